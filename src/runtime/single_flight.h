// SingleFlight: threads that ask for one thing at one time share one making of it.
#pragma once

#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace gemvjit {

template <typename Value>
class SingleFlight {
 public:
  struct Landed {
    Value value;
    bool led;  // made by the calling thread
  };

  // The first thread that asks for `name` runs make(); those that ask before it is done wait, and get a copy. What
  // make() throws is thrown in all of them. make() must not ask for the same name.
  template <typename Make>
  Landed run(const std::string& name, const Make& make) {
    std::shared_ptr<Flight> flight;
    bool led = false;
    {
      const std::lock_guard lock(mutex_);
      std::shared_ptr<Flight>& place = flights_[name];
      if (!place) {
        place = std::make_shared<Flight>();
        led = true;
      }
      flight = place;
    }
    if (led) {
      lead(name, *flight, make);
    } else {
      std::unique_lock lock(flight->mutex);
      flight->landed.wait(lock, [&] { return flight->done; });
    }
    if (flight->thrown) std::rethrow_exception(flight->thrown);
    return {*flight->value, led};
  }

 private:
  struct Flight {
    std::mutex mutex;
    std::condition_variable landed;
    bool done = false;
    std::optional<Value> value;
    std::exception_ptr thrown;
  };

  template <typename Make>
  void lead(const std::string& name, Flight& flight, const Make& make) {
    std::optional<Value> value;
    std::exception_ptr thrown;
    try {
      value.emplace(make());
    } catch (...) {
      thrown = std::current_exception();
    }
    {
      const std::lock_guard lock(mutex_);
      flights_.erase(name);
    }
    const std::lock_guard lock(flight.mutex);
    flight.value = std::move(value);
    flight.thrown = thrown;
    flight.done = true;
    flight.landed.notify_all();
  }

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Flight>> flights_;
};

}  // namespace gemvjit
