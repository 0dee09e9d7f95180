#include "tests/support/acl.h"

#include <sys/xattr.h>

#include <cerrno>
#include <cstdint>

#include "src/base/binary_fields.h"

namespace gemvjit::test {
namespace {

int set(const std::string& path, const char* attribute, const std::vector<AclName>& names, unsigned group_rights,
        unsigned mask) {
  constexpr std::uint32_t nobody_named = 0xFFFFFFFF;
  Bytes value;
  FieldWriter out(value);
  const auto add = [&](unsigned tag, unsigned rights, std::uint32_t id) {
    out.number(static_cast<std::uint16_t>(tag));
    out.number(static_cast<std::uint16_t>(rights));
    out.number(id);
  };
  out.number(std::uint32_t{2});
  add(0x01, 7, nobody_named);  // the order of the tags is asked for by the kernel
  for (const AclName& name : names) {
    if (!name.is_group) add(0x02, name.rights, name.id);
  }
  add(0x04, group_rights, nobody_named);
  for (const AclName& name : names) {
    if (name.is_group) add(0x08, name.rights, name.id);
  }
  add(0x10, mask, nobody_named);
  add(0x20, 0, nobody_named);
  return ::setxattr(path.c_str(), attribute, value.data(), value.size(), 0) == 0 ? 0 : errno;
}

}  // namespace

int set_acl(const std::string& path, const std::vector<AclName>& names, unsigned group_rights, unsigned mask) {
  return set(path, "system.posix_acl_access", names, group_rights, mask);
}

int set_default_acl(const std::string& folder, const std::vector<AclName>& names, unsigned group_rights,
                    unsigned mask) {
  return set(folder, "system.posix_acl_default", names, group_rights, mask);
}

}  // namespace gemvjit::test
