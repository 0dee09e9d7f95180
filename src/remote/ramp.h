// Ramp: how much is done with a server at once. It begins with two, allows one more with each answer up to a limit, so
// that twice as many are under way after each round trip, and half as many, but two, after a failure: a server whose
// queue of connections is short is not met with all of them at the same moment.
//
// Threads: any.
#pragma once

#include <condition_variable>
#include <mutex>

namespace gemvjit {

class Ramp {
 public:
  explicit Ramp(int most);
  void answered();
  void failed();

  // A place among those that are at it. Made it waits for one, for as long as those before take.
  class Place {
   public:
    explicit Place(Ramp& ramp) : ramp_(ramp) { ramp_.enter(); }
    ~Place() { ramp_.leave(); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    Ramp& ramp_;
  };

 private:
  void enter();
  void leave();

  const int most_, least_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  int allowed_, taken_ = 0;
};

}  // namespace gemvjit
