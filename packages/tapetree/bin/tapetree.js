#!/usr/bin/env node
import '@tapetree/cli'
