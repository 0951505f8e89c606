# frozen_string_literal: true

require_relative "lib/rankduel/version"

Gem::Specification.new do |gem|
  gem.name = "rankduel"
  gem.version = Rankduel::VERSION
  gem.summary = "Client of rankduel: which two rankings to interleave for the next query, and what was clicked."
  gem.authors = ["rankduel"]
  gem.licenses = ["MIT", "Apache-2.0"]
  gem.required_ruby_version = ">= 3.1"
  gem.files = Dir["lib/**/*.rb", "sig/**/*.rbs", "LICENSE-*", "README.md"].sort
end
