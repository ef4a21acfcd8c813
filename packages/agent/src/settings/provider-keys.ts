import { hosts } from '../models/hosts.ts'

/** Variables that hold the keys of model providers. Commands that a project starts never get them. */
export const providerKeyVariables: readonly string[] = [
  ...hosts.flatMap(({ keyVariables }) => keyVariables),
  // Keys for services that are reached through a provider package or a configured base URL.
  'ANTHROPIC_AUTH_TOKEN',
  'AWS_BEARER_TOKEN_BEDROCK',
  'AZURE_API_KEY',
  'AZURE_OPENAI_API_KEY',
  'COHERE_API_KEY',
  'GOOGLE_API_KEY',
]
