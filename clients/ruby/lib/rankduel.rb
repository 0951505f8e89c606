# frozen_string_literal: true

require_relative "rankduel/version"
require_relative "rankduel/error"
require_relative "rankduel/pages"
require_relative "rankduel/transport"
require_relative "rankduel/server"
require_relative "rankduel/stock"
require_relative "rankduel/feedback"
require_relative "rankduel/client"
