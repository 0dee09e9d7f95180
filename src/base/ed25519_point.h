// Whether 32 bytes are a public key of Ed25519 that can be trusted with anything: libcrypto takes any bytes for one.
//
// Threads: any.
#pragma once

#include "src/base/ed25519.h"
#include "src/base/status.h"

namespace gemvjit {

// ok for the encoding of a point on the curve that is not of small order. invalid_argument for a point of small order,
// for which anybody can make signatures without a private key; for a second encoding of a point (y not below 2^255-19,
// RFC 8032, 5.1.3); and for what is no point. Takes no secret, and its time depends on the bytes.
Status check_ed25519_point(const Ed25519PublicKey& key);

}  // namespace gemvjit
