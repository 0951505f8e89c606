# frozen_string_literal: true

module Rankduel
  VERSION = "0.1.0"
end
