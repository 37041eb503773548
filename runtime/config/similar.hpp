#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lethe {

/// The known word that was likely meant: at most a third of its letters differ.
std::optional<std::string> most_similar(std::string_view word,
                                        const std::vector<std::string>& known);

}  // namespace lethe
