#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lethe {

/// The known word that was likely meant: at most a third of its letters differ, or so many.
std::optional<std::string> most_similar(std::string_view word,
                                        const std::vector<std::string>& known,
                                        size_t differ_most = 1);

}  // namespace lethe
