import type { ModelProvider } from './catalogue.ts'
import type { KeyState } from './model-info.ts'
import { RegistryError } from './registry-error.ts'

/** Where keys are kept beside the environment: a keyring, a file. */
export interface CredentialSource {
  /** `origin` says where the key is from, in words to show. */
  keyFor(provider: string): Promise<ProviderKey | undefined>
}

export interface ProviderKey {
  value: string
  origin: string
}

export interface KeyPlaces {
  env: Readonly<Record<string, string | undefined>>
  credentials?: CredentialSource | undefined
}

/** The environment comes first, as everywhere. */
export async function findKey(provider: ModelProvider, places: KeyPlaces): Promise<ProviderKey | undefined> {
  for (const variable of provider.keyVariables) {
    const value = places.env[variable]?.trim()
    if (value) return { value, origin: `the environment variable ${variable}` }
  }
  const kept = await places.credentials?.keyFor(provider.id)
  return kept?.value ? kept : undefined
}

export async function keyState(provider: ModelProvider, places: KeyPlaces): Promise<KeyState> {
  const key = await findKey(provider, places)
  if (key) return { type: 'found', origin: key.origin }
  const [variable] = provider.keyVariables
  return variable === undefined ? { type: 'not-needed' } : { type: 'missing', variable }
}

export function missingKey(provider: ModelProvider, variable: string): RegistryError {
  return new RegistryError(
    'missing-key',
    `There is no key for ${provider.name}. Set the environment variable ${variable}, or keep a key for ${provider.id} with your credentials.`,
  )
}
