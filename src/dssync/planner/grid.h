// Divisions of n things into groups of at most g that, one after the other, mix all n: the mixed-radix grid where n
// allows it, a nested uneven grid elsewhere. Things are numbered 0..n-1. Pure; thread-safe.
#pragma once

#include <vector>

namespace dssync {

using Division = std::vector<std::vector<int>>;  // disjoint groups; a thing in none of them is alone

// The fewest factors of n, each from 2 to g, largest last; empty where n has a prime factor above g. {} for n = 1.
// REQUIRES: n >= 1, g >= 2.
std::vector<int> grid_digits(int n, int g);

// One round per digit; round k groups the things that differ in digit k alone. digits[0] belongs to neighbours.
std::vector<Division> grid_rounds(const std::vector<int>& digits);

// grid_rounds where n is g-smooth. Elsewhere at most g blocks of nearly equal size, divided recursively, and a last
// round that deals the things, block by block, cyclically into groups: exact mixing is impossible then
// (docs/mixing.md), but a cycle leaves at most 0.36 of any disagreement for g >= 3 and n <= 64. REQUIRES: n >= 1, g
// >= 2.
std::vector<Division> mixing_rounds(int n, int g);

}  // namespace dssync
