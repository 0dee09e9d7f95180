// An engine in C++20, without a device: as consumer.c.
#include <gemvjit/gemvjit.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

int main() {
  gemvjit_options options;
  gemvjit_options_init(&options);
  options.device = GEMVJIT_DEVICE_NONE;
  options.cache_dir = "";
  gemvjit_context* made = nullptr;
  if (gemvjit_create(&options, &made) != GEMVJIT_OK) {
    std::cerr << gemvjit_last_error() << '\n';
    return 1;
  }
  const std::unique_ptr<gemvjit_context, decltype(&gemvjit_destroy)> context(made, gemvjit_destroy);

  gemvjit_problem problem;
  gemvjit_problem_init(&problem, GEMVJIT_NVFP4_GEMV, 4096, 4096);
  problem.arch = "sm_90a";
  problem.allow_untuned = 1;
  std::vector<std::string> keys;
  const auto keep = [](void* user, const gemvjit_kernel_info* kernel) {
    static_cast<std::vector<std::string>*>(user)->emplace_back(kernel->key);
    return 0;
  };
  if (gemvjit_plan(context.get(), &problem, 1, keep, &keys) != GEMVJIT_OK) {
    std::cerr << gemvjit_last_error() << '\n';
    return 1;
  }
  std::cout << gemvjit_version() << ' ' << keys.size() << '\n';
}
