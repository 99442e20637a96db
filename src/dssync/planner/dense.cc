// The mixing figures by dense matrices.
#include "dssync/planner/dense.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace dssync::testing {
namespace {

class Matrix {
 public:
  explicit Matrix(std::size_t size) : size_(size), values_(size * size, 0) {}

  static Matrix identity(std::size_t size) {
    Matrix result(size);
    for (std::size_t i = 0; i < size; ++i) {
      result(i, i) = 1;
    }
    return result;
  }

  double& operator()(std::size_t i, std::size_t j) { return values_[i * size_ + j]; }
  double operator()(std::size_t i, std::size_t j) const { return values_[i * size_ + j]; }
  std::size_t size() const { return size_; }

  friend Matrix operator*(const Matrix& a, const Matrix& b) {
    Matrix result(a.size_);
    for (std::size_t i = 0; i < a.size_; ++i) {
      for (std::size_t k = 0; k < a.size_; ++k) {
        const double factor = a(i, k);
        for (std::size_t j = 0; j < a.size_; ++j) {
          result(i, j) += factor * b(k, j);
        }
      }
    }
    return result;
  }

  friend Matrix operator+(Matrix a, const Matrix& b) {
    for (std::size_t i = 0; i < a.values_.size(); ++i) {
      a.values_[i] += b.values_[i];
    }
    return a;
  }

  Matrix transposed() const {
    Matrix result(size_);
    for (std::size_t i = 0; i < size_; ++i) {
      for (std::size_t j = 0; j < size_; ++j) {
        result(j, i) = (*this)(i, j);
      }
    }
    return result;
  }

  double trace() const {
    double sum = 0;
    for (std::size_t i = 0; i < size_; ++i) {
      sum += (*this)(i, i);
    }
    return sum;
  }

 private:
  std::size_t size_;
  std::vector<double> values_;
};

Matrix averaging_matrix(const Round& round, std::size_t workers) {
  Matrix result(workers);
  for (const Group& group : round.groups) {
    for (const Rank i : group) {
      for (const Rank j : group) {
        result(static_cast<std::size_t>(i), static_cast<std::size_t>(j)) = 1.0 / static_cast<double>(group.size());
      }
    }
  }
  return result;
}

// I - J.
Matrix centering(std::size_t workers) {
  Matrix result = Matrix::identity(workers);
  for (std::size_t i = 0; i < workers; ++i) {
    for (std::size_t j = 0; j < workers; ++j) {
      result(i, j) -= 1.0 / static_cast<double>(workers);
    }
  }
  return result;
}

// Cyclic Jacobi rotations on a symmetric matrix.
double largest_eigenvalue(Matrix a) {
  const std::size_t n = a.size();
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        off += a(p, q) * a(p, q);
        if (std::abs(a(p, q)) < 1e-300) {
          continue;
        }
        const double theta = (a(q, q) - a(p, p)) / (2 * a(p, q));
        const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1);
        const double s = t * c;
        for (std::size_t k = 0; k < n; ++k) {
          const double kp = a(k, p);
          const double kq = a(k, q);
          a(k, p) = c * kp - s * kq;
          a(k, q) = s * kp + c * kq;
        }
        for (std::size_t k = 0; k < n; ++k) {
          const double pk = a(p, k);
          const double qk = a(q, k);
          a(p, k) = c * pk - s * qk;
          a(q, k) = s * pk + c * qk;
        }
      }
    }
    if (off < 1e-26) {
      break;
    }
  }
  double largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    largest = std::max(largest, a(i, i));
  }
  return largest;
}

}  // namespace

Mixing dense_mixing(const Schedule& schedule, int workers) {
  const auto n = static_cast<std::size_t>(workers);
  const Matrix center = centering(n);
  std::vector<Matrix> averages;
  Matrix cycle = center;
  Matrix noise(n);  // covariance that one cycle adds
  for (const Round& round : schedule) {
    averages.push_back(averaging_matrix(round, n));
    cycle = averages.back() * cycle;
    noise = averages.back() * (noise + center) * averages.back();
  }
  Mixing mixing;
  mixing.cycle_norm = std::sqrt(largest_eigenvalue(cycle.transposed() * cycle));
  if (mixing.cycle_norm > 1 - 1e-9) {
    mixing.steady_disagreement = std::numeric_limits<double>::infinity();
    return mixing;
  }
  // The covariance C = P C P^T + noise at the end of a cycle, summed by doubling.
  Matrix covariance = noise;
  for (Matrix power = cycle; largest_eigenvalue(power.transposed() * power) > 1e-20; power = power * power) {
    covariance = covariance + power * covariance * power.transposed();
  }
  double sum = 0;
  for (const Matrix& average : averages) {
    covariance = average * (covariance + center) * average;
    sum += covariance.trace();
  }
  mixing.steady_disagreement = sum / static_cast<double>(schedule.size()) / workers;
  return mixing;
}

}  // namespace dssync::testing
