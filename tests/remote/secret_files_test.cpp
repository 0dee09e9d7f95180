// Files with secrets of the remote cache that others may read: no request is made, and one line says why. Nothing here
// reaches a network: whatever is refused is refused before libcurl is opened, and the libcurl named is none.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "src/remote/curl_transport.h"
#include "tests/support/temp_dir.h"

namespace gemvjit {
namespace {

using testing::HasSubstr;

class RemoteSecretFiles : public testing::Test {
 protected:
  Status ask(std::string RemoteOptions::*option) {
    RemoteOptions options;
    options.url = "http://127.0.0.1:1";
    options.libcurl = dir_.path("no-libcurl.so");
    options.*option = file_;
    HttpRequest request;
    request.url = options.url;
    return make_curl_transport(options)->send(request).status();
  }

  test::TempDir dir_;
  std::string file_ = dir_.write("secret", "hush");
};

TEST_F(RemoteSecretFiles, ThatOthersMayReadAreRefused) {
  for (const auto option : {&RemoteOptions::token_file, &RemoteOptions::netrc, &RemoteOptions::key,
                            &RemoteOptions::cert /* which holds the key, where none is named */}) {
    for (const mode_t mode : {0604, 0640, 0644}) {
      ASSERT_EQ(::chmod(file_.c_str(), mode), 0);
      const Status status = ask(option);
      EXPECT_EQ(status.code(), StatusCode::unsupported);
      EXPECT_THAT(status.message(), HasSubstr(file_ + " is not used: its mode"));
      EXPECT_THAT(status.message(), HasSubstr("chmod 600"));
      EXPECT_THAT(status.message(), testing::Not(HasSubstr("hush")));
      EXPECT_THAT(status.message(), testing::Not(HasSubstr("\n")));
    }
    ASSERT_EQ(::chmod(file_.c_str(), 0600), 0);
    EXPECT_THAT(ask(option).message(), HasSubstr("no-libcurl.so")) << "refused no more";
  }
}

TEST_F(RemoteSecretFiles, ACertificateBesideAKeyOfItsOwnIsNoSecret) {
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  RemoteOptions options;
  options.url = "https://127.0.0.1:1";
  options.libcurl = dir_.path("no-libcurl.so");
  options.cert = file_;
  options.key = dir_.write("key", "x");
  options.ca = file_;
  ASSERT_EQ(::chmod(options.key.c_str(), 0600), 0);
  HttpRequest request;
  request.url = options.url;
  EXPECT_THAT(make_curl_transport(options)->send(request).status().message(), HasSubstr("no-libcurl.so"));
}

TEST_F(RemoteSecretFiles, AMissingTokenOrNetrcIsSaid) {
  file_ = dir_.path("none");
  EXPECT_THAT(ask(&RemoteOptions::token_file).message(), HasSubstr("cannot open the token file"));
  EXPECT_THAT(ask(&RemoteOptions::netrc).message(), HasSubstr("cannot open the netrc file"));
}

}  // namespace
}  // namespace gemvjit
