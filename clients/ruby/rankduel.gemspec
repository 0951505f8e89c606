# frozen_string_literal: true

Gem::Specification.new do |gem|
  gem.name = "rankduel"
  gem.version = "0.1.0"
  gem.summary = "Client of rankduel: which two rankings to interleave for the next query, and what was clicked."
  gem.authors = ["rankduel"]
  gem.licenses = ["MIT", "Apache-2.0"]
  gem.required_ruby_version = ">= 3.1"
  gem.files = Dir["lib/**/*.rb", "sig/**/*.rbs", "README.md"]
end
