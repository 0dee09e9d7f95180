// A CubinStore that keeps to the policy of signatures over one on disk (signatures.h).
//
// put()   signs what is not signed, where there is a signing key. Under the policy all also what no trusted key signed;
//         and an entry that is there without a trusted signature is replaced. Without a key to sign with, that policy
//         keeps what is put in memory only (an entry that nobody would use does not belong on the disk), and each put
//         answers cache_not_writable with the reason.
// get()   under the policy all: what no trusted key signed is a miss, warned of once a file and counted
//         (StoreStats::untrusted); it stays where it is, for it is not damaged. Then what was kept in memory.
// The rest is the inner store's; list() has all that is there, trusted or not.
#pragma once

#include <memory>

#include "cache/signatures.h"
#include "cache/store.h"

namespace gemvjit {

// The inner store itself where there is nothing to do: no policy for entries and no key to sign with, or a
// store without files.
std::unique_ptr<CubinStore> make_signed_store(std::unique_ptr<CubinStore> inner,
                                              std::shared_ptr<const Signatures> signatures, Log log);

}  // namespace gemvjit
