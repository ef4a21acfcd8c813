import type { ProviderMetadata } from './model.ts'
import type { ProviderFacts } from './provider-facts.ts'

export interface SignedReasoning {
  signature?: string
  providerMetadata?: ProviderMetadata
}

type Place = Pick<ProviderFacts, 'namespace' | 'signatureKey'>

/** Takes the signature out of the metadata: it can be long, and is kept once. */
export function takeSignature(metadata: ProviderMetadata, { namespace, signatureKey = '' }: Place): SignedReasoning {
  const { [namespace]: own, ...others } = metadata
  const { [signatureKey]: signature, ...rest } = asRecord(own)
  const providerMetadata = { ...others, ...(Object.keys(rest).length > 0 && { [namespace]: rest }) }
  return {
    ...(typeof signature === 'string' && { signature }),
    ...(Object.keys(providerMetadata).length > 0 && { providerMetadata }),
  }
}

export function putSignature({ signature, providerMetadata = {} }: SignedReasoning, place: Place): ProviderMetadata {
  const { namespace, signatureKey } = place
  if (signature === undefined || signatureKey === undefined) return providerMetadata
  return { ...providerMetadata, [namespace]: { ...asRecord(providerMetadata[namespace]), [signatureKey]: signature } }
}

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
