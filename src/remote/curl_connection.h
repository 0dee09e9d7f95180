// Connection: a handle of libcurl with what it keeps between requests, and no descriptor that a child would inherit.
//
// The host may start programs at any time; they must not hold connections open, nor find them. Sockets are made
// close-on-exec here. Two descriptors by which libcurl wakes itself (older versions than 8.16 make them inheritable)
// are found and marked as soon as they exist. What stays is the pair by which those versions wait for the look-up of a
// host's name: for as long as that takes a child may inherit it, and can do nothing with it.
#pragma once

#include <memory>

#include "src/remote/curl_api.h"

namespace gemvjit::curl {

class Connection {
 public:
  // Null if libcurl has no memory.
  static std::unique_ptr<Connection> open(std::shared_ptr<const Api> api);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Handle* handle() const { return easy_; }  // for options
  // All options but those for sockets and signals as at first; connections are kept.
  void reset();
  // The request that the options say, until it has ended: CURLcode.
  int perform();

 private:
  Connection(std::shared_ptr<const Api> api, Handle* easy, Multi* multi);

  const std::shared_ptr<const Api> api_;
  Handle* const easy_;
  Multi* const multi_;
};

}  // namespace gemvjit::curl
