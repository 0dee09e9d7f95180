#include "tools/common/safetensors.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/temp_dir.h"
#include "tests/tools/model_files.h"

namespace gemvjit::tools {
namespace {

using nlohmann::json;
using test::ModelTensor;
using test::safetensors_bytes;
using test::safetensors_file;
using test::TempDir;

const std::vector<ModelTensor> two_tensors{{"b.weight", "BF16", {4, 3}, 2}, {"a.weight", "F32", {5}, 4}};

// Reads a file of that content and expects a refusal that holds `part`.
void expect_refused(const std::string& content, const std::string& part) {
  const TempDir folder;
  const std::string path = folder.write("model.safetensors", content);
  const auto tensors = read_safetensors_file(path);
  ASSERT_FALSE(tensors) << "accepted, though: " << part;
  EXPECT_EQ(tensors.status().code(), StatusCode::invalid_argument);
  EXPECT_NE(tensors.status().message().find(part), std::string::npos) << tensors.status().message();
  EXPECT_NE(tensors.status().message().find(path), std::string::npos) << "the file is not named";
}

// The two tensors with one header value replaced.
std::string file_with(const std::string& tensor, const std::string& field, const json& value) {
  std::uint64_t data_bytes = 0;
  json header = test::safetensors_header(two_tensors, data_bytes);
  header[tensor][field] = value;
  return safetensors_bytes(header.dump(), data_bytes);
}

TEST(Safetensors, ReadsNamesTypesShapesAndPlaces) {
  const TempDir folder;
  const std::string content = safetensors_file(two_tensors);
  const auto tensors = read_safetensors_file(folder.write("model.safetensors", content));
  ASSERT_TRUE(tensors) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 2u);
  const Tensor& a = (*tensors)[0];
  const Tensor& b = (*tensors)[1];
  EXPECT_EQ(a.name, "a.weight");
  EXPECT_EQ(b.name, "b.weight");
  EXPECT_EQ(b.dtype, "BF16");
  EXPECT_EQ(b.shape, (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(b.shape_text(), "[4, 3]");
  EXPECT_EQ(b.bytes, 24u);
  EXPECT_EQ(a.bytes, 20u);
  EXPECT_EQ(a.file_offset, b.file_offset + b.bytes);
  EXPECT_EQ(a.file_offset + a.bytes, content.size());
}

TEST(Safetensors, AnUnknownTypeIsKept) {
  const TempDir folder;
  const auto tensors =
      read_safetensors_file(folder.write("m.safetensors", safetensors_file({{"x", "F4_NEXT", {3}, 5}})));
  ASSERT_TRUE(tensors) << tensors.status().message();
  EXPECT_EQ((*tensors)[0].dtype, "F4_NEXT");
}

TEST(Safetensors, EmptyTensorsTakeNoRoom) {
  const TempDir folder;
  const auto tensors = read_safetensors_file(
      folder.write("m.safetensors", safetensors_file({{"none", "F32", {0, 7}, 4}, {"one", "F32", {}, 4}})));
  ASSERT_TRUE(tensors) << tensors.status().message();
  EXPECT_EQ((*tensors)[0].bytes, 0u);
  EXPECT_EQ((*tensors)[1].bytes, 4u);
}

TEST(Safetensors, RefusesWhatIsNoSafetensorsFile) {
  expect_refused("", "has 0 bytes");
  expect_refused("PK\x03\x04", "has 4 bytes");
  expect_refused("this is a text file, not a model", "header of");
  expect_refused(safetensors_bytes("[1, 2]", 0), "not a JSON object");
  expect_refused(safetensors_bytes("{\"a\": {", 0), "not a JSON object");
  expect_refused(safetensors_bytes(std::string("{\"\xff\": 1}"), 0), "not a JSON object");
  expect_refused(safetensors_bytes(std::string(100000, '['), 0), "not a JSON object");
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string whole = safetensors_file(two_tensors);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const TempDir folder;
    EXPECT_FALSE(read_safetensors_file(folder.write("m.safetensors", whole.substr(0, size)))) << size << " bytes";
  }
  expect_refused(whole.substr(0, whole.size() - 1), "tensor 'a.weight': truncated");
  expect_refused(whole + "x", "belong to no tensor");
}

TEST(Safetensors, RefusesAHugeHeaderWithoutReadingIt) {
  expect_refused(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + "{}", "limit");
  expect_refused(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + "{}", "limit");
}

TEST(Safetensors, RefusesAHeaderThatLies) {
  expect_refused(file_with("b.weight", "shape", {5, 3}), "BF16 [5, 3] takes 30 bytes");
  expect_refused(file_with("b.weight", "dtype", "F32"), "F32 [4, 3] takes 48 bytes");
  expect_refused(file_with("b.weight", "data_offsets", {0, 26}), "takes 24 bytes");
  expect_refused(file_with("b.weight", "data_offsets", {24, 0}), "no range");
  expect_refused(file_with("b.weight", "data_offsets", {-24, 0}), "no range");
  expect_refused(file_with("b.weight", "data_offsets", {0}), "no data_offsets");
  expect_refused(file_with("b.weight", "data_offsets", {18446744073709551000u, 18446744073709551024u}), "truncated");
  expect_refused(file_with("a.weight", "data_offsets", {4, 24}), "overlaps");
  expect_refused(file_with("b.weight", "shape", {-4, -3}), "no size");
  expect_refused(file_with("b.weight", "shape", {4.0, 3}), "no size");
  expect_refused(file_with("b.weight", "shape", "4x3"), "no shape");
  expect_refused(file_with("b.weight", "shape", {4611686018427387904, 3}), "larger than any file");
  expect_refused(file_with("b.weight", "shape", {9223372036854775807, 9223372036854775807}), "larger than any file");
  expect_refused(file_with("b.weight", "dtype", 7), "no dtype");
  expect_refused(safetensors_bytes(R"({"a": 3})", 0), "tensor 'a'");
}

TEST(Safetensors, RefusesWhatTheFormatDoesNotHaveBeforeItTakesMemory) {
  const auto repeated = [](const std::string& part, std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += part;
    return text;
  };
  const std::string lists = repeated("[],", 300'000);
  expect_refused(safetensors_bytes("{\"a\": [" + lists + "1]}", 0),
                 "tensor 'a': its header entry is not a JSON object");
  expect_refused(safetensors_bytes("{\"a\": {\"x\": [" + lists + "1]}}", 0), "tensor 'a': a list where");
  expect_refused(safetensors_bytes("{\"a\": {\"x\": {\"y\": 1}}}", 0), "tensor 'a': an object where");
  expect_refused(safetensors_bytes("{\"a\": {\"shape\": [" + repeated("1,", 64) + "1]}}", 0),
                 "more than 64 dimensions");
  expect_refused(safetensors_bytes("{\"a\": 1, \"b\": 2}", 0), "tensor 'a': its header entry");
  expect_refused(safetensors_bytes("{\"__metadata__\": " + std::string(100'000, '['), 0), "levels deep");
  // Unknown fields and any metadata are passed over.
  const TempDir folder;
  const auto tensors =
      read_safetensors_file(folder.write("m.safetensors", safetensors_bytes(R"({"__metadata__": {"x": [1, {"y": 2}]},
                                             "a": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1], "z": 3}})",
                                                                            1)));
  ASSERT_TRUE(tensors) << tensors.status().message();
  EXPECT_EQ(tensors->size(), 1u);
}

TEST(Safetensors, NamesInMessagesAreEscapedAndCut) {
  const std::string name = "\\u001b[2J" + std::string(400, 'x');
  const TempDir folder;
  const auto tensors =
      read_safetensors_file(folder.write("m.safetensors", safetensors_bytes("{\"" + name + "\": 1}", 0)));
  ASSERT_FALSE(tensors);
  const std::string message = tensors.status().message();
  EXPECT_NE(message.find("'\\x1b[2Jxx"), std::string::npos) << message;
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  EXPECT_EQ(message.find(std::string(121, 'x')), std::string::npos) << message;
}

TEST(Safetensors, RefusesHolesAndRepeatedNames) {
  expect_refused(safetensors_bytes(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [2, 4]}})", 4),
                 "belong to no tensor");
  expect_refused(safetensors_bytes(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                                       "a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]}})",
                                   2),
                 "names 'a' twice");
}

TEST(ModelFolder, TakesAllFilesOrOneFile) {
  const TempDir folder;
  folder.write("one.safetensors", safetensors_file({{"a.weight", "U8", {2}, 1}}));
  const std::string two = folder.write("two.safetensors", safetensors_file({{"b.weight", "U8", {2}, 1}}));
  folder.write("config.json", "{}");
  const auto all = read_model(folder.path());
  ASSERT_TRUE(all) << all.status().message();
  EXPECT_EQ(all->size(), 2u);
  const auto one = read_model(two);
  ASSERT_TRUE(one) << one.status().message();
  ASSERT_EQ(one->size(), 1u);
  EXPECT_EQ((*one)[0].name, "b.weight");
}

TEST(ModelFolder, TheIndexDecidesWhichFilesBelong) {
  const TempDir folder;
  folder.write("one.safetensors", safetensors_file({{"a.weight", "U8", {2}, 1}}));
  folder.write("stray.safetensors", "garbage that nobody asked for");
  folder.write("model.safetensors.index.json", R"({"weight_map": {"a.weight": "one.safetensors"}})");
  const auto tensors = read_model(folder.path());
  ASSERT_TRUE(tensors) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 1u);
  EXPECT_EQ((*tensors)[0].name, "a.weight");
}

TEST(ModelFolder, LinksAreFollowed) {
  const TempDir blobs, folder;
  const std::string blob = blobs.write("0123", safetensors_file({{"a.weight", "U8", {2}, 1}}));
  std::filesystem::create_symlink(blob, folder.path("model.safetensors"));
  const auto tensors = read_model(folder.path());
  ASSERT_TRUE(tensors) << tensors.status().message();
  EXPECT_EQ(tensors->size(), 1u);
}

TEST(ModelFolder, ABadIndexNamesFileAndTensor) {
  const auto message_for = [](const std::string& index) {
    const TempDir folder;
    folder.write("one.safetensors", safetensors_file({{"a.weight", "U8", {2}, 1}}));
    folder.write("model.safetensors.index.json", index);
    const auto tensors = read_model(folder.path());
    EXPECT_FALSE(tensors) << index;
    EXPECT_EQ(tensors.status().code(), StatusCode::invalid_argument) << index;
    return tensors.status().message();
  };
  EXPECT_NE(message_for(R"({"weight_map": {"a.weight": "gone.safetensors"}})").find("gone.safetensors"),
            std::string::npos);
  const std::string lie = message_for(R"({"weight_map": {"c.weight": "one.safetensors"}})");
  EXPECT_NE(lie.find("c.weight"), std::string::npos) << lie;
  EXPECT_NE(lie.find("one.safetensors"), std::string::npos) << lie;
  EXPECT_NE(message_for(R"({"weight_map": {"a.weight": "../one.safetensors"}})").find("no name"), std::string::npos);
  EXPECT_NE(message_for(R"({"weight_map": {"a.weight": ".."}})").find("no name"), std::string::npos);
  EXPECT_NE(message_for(R"({"weight_map": {"a.weight": ["one.safetensors"]}})").find("no string"), std::string::npos);
  EXPECT_NE(message_for(R"({"weight_map": ["one.safetensors"]})").find("weight_map"), std::string::npos);
  EXPECT_NE(message_for("{\"a\": " + std::string(100'000, '[')).find("levels deep"), std::string::npos);
  EXPECT_NE(message_for(R"({"weight_map": {}})").find("weight_map"), std::string::npos);
  EXPECT_NE(message_for("{").find("JSON"), std::string::npos);
}

TEST(ModelFolder, NothingThereIsNotFound) {
  const TempDir folder;
  EXPECT_EQ(read_model(folder.path("absent")).status().code(), StatusCode::not_found);
  const auto empty = read_model(folder.path());
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.status().code(), StatusCode::not_found);
  EXPECT_NE(empty.status().message().find("no *.safetensors"), std::string::npos);
}

TEST(ModelFolder, ATensorInTwoFilesIsRefused) {
  const TempDir folder;
  folder.write("one.safetensors", safetensors_file({{"a.weight", "U8", {2}, 1}}));
  folder.write("two.safetensors", safetensors_file({{"a.weight", "U8", {2}, 1}}));
  const auto tensors = read_model(folder.path());
  ASSERT_FALSE(tensors);
  EXPECT_NE(tensors.status().message().find("a.weight"), std::string::npos) << tensors.status().message();
}

}  // namespace
}  // namespace gemvjit::tools
