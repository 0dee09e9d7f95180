#include "src/remote/curl_api.h"

#include <gtest/gtest.h>

#include <string_view>

#include "src/remote/curl_transport.h"
#include "src/remote/remote_options.h"

namespace gemvjit {
namespace {

// The beginning of struct curl_easyoption (curl/options.h).
struct EasyOption {
  const char* name;
  int id;
};

TEST(CurlApi, TheNumbersAreThoseOfTheLibraryThatIsInstalled) {
  const auto api = curl::load(default_libcurl);
  if (!api) GTEST_SKIP() << api.status().message();
  ASSERT_NE((*api)->easy_option_by_name, nullptr) << (*api)->version;
#define X(name, number)                                                                                        \
  {                                                                                                            \
    const void* const found = (*api)->easy_option_by_name(#name);                                              \
    ASSERT_TRUE(found != nullptr || std::string_view(#name) == "QUICK_EXIT") << #name << ", of every version"; \
    if (found != nullptr) {                                                                                    \
      EXPECT_EQ(static_cast<const EasyOption*>(found)->id, number) << #name;                                   \
    }                                                                                                          \
  }
  GEMVJIT_CURL_OPTIONS(X)
#undef X
}

TEST(CurlApi, AMissingLibraryIsToldByItsName) {
  const auto api = curl::load("/nowhere/libcurl.so.4");
  EXPECT_EQ(api.status().code(), StatusCode::unsupported);
  EXPECT_NE(api.status().message().find("/nowhere/libcurl.so.4"), std::string::npos);
  RemoteOptions options;
  options.url = "http://127.0.0.1:1";
  options.libcurl = "/nowhere/libcurl.so.4";
  const auto transport = make_curl_transport(options);
  EXPECT_EQ(transport->send({HttpMethod::get, "http://127.0.0.1:1/x", nullptr, 10, 100}).status().code(),
            StatusCode::unsupported);
}

TEST(CurlApi, ALibraryThatIsNoneIsRefused) {
  EXPECT_EQ(curl::load("libdl.so.2").status().code(), StatusCode::unsupported);
}

TEST(CurlTransport, NobodyThereIsAFailureWithTheAddress) {
  if (const auto api = curl::load(default_libcurl); !api) GTEST_SKIP() << api.status().message();
  RemoteOptions options;
  options.url = "http://127.0.0.1:1";
  const auto response =
      make_curl_transport(options)->send({HttpMethod::get, "http://127.0.0.1:1/x", nullptr, 10, 2000});
  EXPECT_EQ(response.status().code(), StatusCode::io_error);
  EXPECT_NE(response.status().message().find("http://127.0.0.1:1/x"), std::string::npos);
}

}  // namespace
}  // namespace gemvjit
