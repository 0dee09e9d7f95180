#include "src/base/ed25519_point.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace gemvjit {
namespace {

// The y of the eight points whose order divides 8, little endian; a key's last bit, the sign of x, makes two of each.
// tests/base/small_order_test.py holds this table against arithmetic.
constexpr std::array<Ed25519PublicKey, 5> small_order_y = {{
    {0x00},
    {0x01},
    {0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
     0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
    {0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
     0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a},
    {0xec, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
     0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
}};

// A number modulo p = 2^255 - 19, in eight digits of 32 bits, the lowest first; not always the least of its residues.
using Number = std::array<std::uint32_t, 8>;

constexpr Number p = {0xFFFFFFED, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x7FFFFFFF};
constexpr Number one = {1};
// -121665/121666, the d of the curve -x^2 + y^2 = 1 + d x^2 y^2.
constexpr Number curve_d = {0x135978A3, 0x75EB4DCA, 0x4141D8AB, 0x00700A4D,
                            0x7779E898, 0x8CC74079, 0x2B6FFE73, 0x52036CEE};

// 2^256 is 38 modulo p.
Number fold(Number number, std::uint64_t carry) {
  while (carry != 0) {
    std::uint64_t sum = carry * 38;
    for (std::uint32_t& digit : number) {
      sum += digit;
      digit = static_cast<std::uint32_t>(sum);
      sum >>= 32;
    }
    carry = sum;
  }
  return number;
}

Number multiply(const Number& a, const Number& b) {
  std::array<std::uint32_t, 16> product{};
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      carry += std::uint64_t{a[i]} * b[j] + product[i + j];
      product[i + j] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    product[i + b.size()] = static_cast<std::uint32_t>(carry);
  }
  Number low{};
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < low.size(); ++i) {
    carry += product[i] + std::uint64_t{38} * product[i + low.size()];
    low[i] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
  return fold(low, carry);
}

// a < b, of two numbers as they stand.
bool is_less(const Number& a, const Number& b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

Number add(const Number& a, const Number& b) {
  Number sum{};
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    carry += std::uint64_t{a[i]} + b[i];
    sum[i] = static_cast<std::uint32_t>(carry);
    carry >>= 32;
  }
  return fold(sum, carry);
}

// The difference of two numbers as they stand, b <= a.
Number subtract_plainly(const Number& a, const Number& b) {
  Number difference{};
  std::uint64_t borrow = 0;
  for (std::size_t i = 0; i < difference.size(); ++i) {
    const std::uint64_t digit = std::uint64_t{a[i]} - b[i] - borrow;
    difference[i] = static_cast<std::uint32_t>(digit);
    borrow = digit >> 63;
  }
  return difference;
}

Number least_residue(Number number) {
  while (!is_less(number, p)) number = subtract_plainly(number, p);
  return number;
}

// Euler's criterion: number^((p-1)/2) is 1 for squares but 0, and (p-1)/2 = 2^254 - 10.
bool is_square(const Number& number) {
  Number power = one;
  const Number exponent = {0xFFFFFFF6, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF,
                           0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x3FFFFFFF};
  for (std::size_t bit = 256; bit-- > 0;) {
    power = multiply(power, power);
    if ((exponent[bit / 32] >> (bit % 32) & 1) != 0) power = multiply(power, number);
  }
  const Number least = least_residue(power);
  return least == one || least == Number{};
}

// x^2 = (y^2 - 1) / (d y^2 + 1) has a solution, where the denominator never is 0, if the product of the two is a
// square.
bool is_on_curve(const Number& y) {
  const Number y_squared = multiply(y, y);
  const Number numerator = add(y_squared, subtract_plainly(p, one));
  const Number denominator = add(multiply(curve_d, y_squared), one);
  return is_square(multiply(numerator, denominator));
}

Status refuse(const char* why) { return {StatusCode::invalid_argument, why}; }

}  // namespace

Status check_ed25519_point(const Ed25519PublicKey& key) {
  Ed25519PublicKey without_sign = key;
  without_sign.back() &= 0x7F;
  Number y{};
  for (std::size_t i = 0; i < key.size(); ++i) y[i / 4] |= std::uint32_t{without_sign[i]} << (8 * (i % 4));
  if (!is_less(y, p)) return refuse("it is no public key of Ed25519: its y is not below 2^255 - 19");
  if (std::find(small_order_y.begin(), small_order_y.end(), without_sign) != small_order_y.end()) {
    return refuse("it is a point of small order, for which anybody can make signatures");
  }
  if (!is_on_curve(y)) return refuse("it is no public key of Ed25519: there is no such point on the curve");
  return Status::ok();
}

}  // namespace gemvjit
