#include "src/remote/remote_options.h"

#include <gtest/gtest.h>

#include <map>

#include "src/runtime/options.h"

namespace gemvjit {
namespace {

using Variables = std::map<std::string, std::string>;

Result<RemoteOptions> resolved(const Variables& variables) {
  return resolve_remote_options([&](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  });
}

TEST(RemoteUrl, AcceptsAddressesOfServersAndBuckets) {
  for (const char* url : {"http://cache", "http://cache:8080", "https://cache.example/a/b/", "http://[::1]:80/x",
                          "s3://bucket", "s3://bucket/pre.fix/~a_b%20"}) {
    EXPECT_TRUE(check_remote_url(url)) << url;
  }
}

TEST(RemoteUrl, RefusesAllElseAndRepeatsNone) {
  for (const std::string url :
       {"", "cache", "ftp://secret", "file:///secret", "http://", "http:///secret", "http://:80/secret",
        "https://user:secret@cache/", "http://cache/?secret=1", "http://cache/#secret", "http://cache/se cret",
        "http://cache/\nsecret", "s3://", "s3:///secret", "gopher://cache/secret", "HTTP://secret"}) {
    const Status status = check_remote_url(url);
    EXPECT_EQ(status.code(), StatusCode::invalid_argument) << url;
    EXPECT_EQ(status.message().find("secret"), std::string::npos) << status.message();
  }
  EXPECT_FALSE(check_remote_url("http://" + std::string(3000, 'a')));
}

TEST(RemoteUrl, TheBaseHasNoSlashAtItsEnd) {
  RemoteOptions options;
  options.url = "https://cache/prefix//";
  EXPECT_EQ(remote_base_url(options), "https://cache/prefix");
  options.url = "s3://bucket/a/b/";
  EXPECT_EQ(remote_base_url(options), "https://s3.us-east-1.amazonaws.com/bucket/a/b");
  options.s3_region = "eu-west-3";
  EXPECT_EQ(remote_base_url(options), "https://s3.eu-west-3.amazonaws.com/bucket/a/b");
  options.s3_endpoint = "http://minio:9000/";
  EXPECT_EQ(remote_base_url(options), "http://minio:9000/bucket/a/b");
}

TEST(RemoteSettings, NothingIsSetByDefaultAndOnlyReadingIs) {
  const auto options = resolved({{"AWS_REGION", "mars"}, {"GEMVJIT_REMOTE_TOKEN", "t"}});
  ASSERT_TRUE(options);
  EXPECT_FALSE(options->is_set());
  EXPECT_FALSE(options->write);
  EXPECT_FALSE(resolved({{"GEMVJIT_REMOTE", "none"}})->is_set());
  EXPECT_FALSE(resolved({{"GEMVJIT_REMOTE", "http://a"}})->write);
  EXPECT_FALSE(resolved({{"GEMVJIT_REMOTE", "http://a"}, {"GEMVJIT_REMOTE_WRITE", "0"}})->write);
  EXPECT_TRUE(resolved({{"GEMVJIT_REMOTE", "http://a"}, {"GEMVJIT_REMOTE_WRITE", "1"}})->write);
}

TEST(RemoteSettings, TheEndpointAndRegionOfS3ComeFromTheFirstThatNamesThem) {
  Variables variables = {{"GEMVJIT_REMOTE", "s3://b/p"}, {"AWS_ENDPOINT_URL", "http://third"}};
  EXPECT_EQ(resolved(variables)->s3_endpoint, "http://third");
  variables["AWS_ENDPOINT_URL_S3"] = "http://second";
  EXPECT_EQ(resolved(variables)->s3_endpoint, "http://second");
  variables["GEMVJIT_REMOTE_S3_ENDPOINT"] = "http://first";
  EXPECT_EQ(resolved(variables)->s3_endpoint, "http://first");
  EXPECT_EQ(resolved(variables)->s3_region, "us-east-1");
  variables["AWS_DEFAULT_REGION"] = "later";
  EXPECT_EQ(resolved(variables)->s3_region, "later");
  variables["AWS_REGION"] = "sooner";
  EXPECT_EQ(resolved(variables)->s3_region, "sooner");
}

TEST(RemoteSettings, WhatMeansNothingIsRefusedByNameAndNoSecretIsShown) {
  struct Wrong {
    const char* named;
    Variables variables;
  };
  const std::vector<Wrong> all = {
      {"GEMVJIT_REMOTE", {{"GEMVJIT_REMOTE", "https://user:secret@host"}}},
      {"GEMVJIT_REMOTE", {{"GEMVJIT_REMOTE", "secret"}}},
      {"GEMVJIT_REMOTE_WRITE", {{"GEMVJIT_REMOTE", "http://a"}, {"GEMVJIT_REMOTE_WRITE", "yes"}}},
      {"GEMVJIT_REMOTE_S3_ENDPOINT",
       {{"GEMVJIT_REMOTE", "s3://b"}, {"GEMVJIT_REMOTE_S3_ENDPOINT", "http://user:secret@host"}}},
      {"GEMVJIT_REMOTE_S3_ENDPOINT", {{"GEMVJIT_REMOTE", "s3://b"}, {"GEMVJIT_REMOTE_S3_ENDPOINT", "s3://other"}}},
      {"AWS_ENDPOINT_URL", {{"GEMVJIT_REMOTE", "s3://b"}, {"AWS_ENDPOINT_URL", "http://user:secret@host"}}},
  };
  for (const Wrong& wrong : all) {
    const auto options = resolved(wrong.variables);
    ASSERT_EQ(options.status().code(), StatusCode::invalid_argument);
    EXPECT_EQ(options.status().message().find("secret"), std::string::npos) << options.status().message();
    EXPECT_NE(options.status().message().find(wrong.named), std::string::npos) << options.status().message();
  }
}

}  // namespace
}  // namespace gemvjit
