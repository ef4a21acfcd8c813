/** Models by name: the registry of providers, and what a model is asked and answers. */
export {
  thinkingLevels,
  type FinishReason,
  type ModelCall,
  type ModelLimits,
  type ModelPart,
  type ModelRequest,
  type ProviderMetadata,
} from './models/model.ts'
export type { ModelPrices } from './models/model-prices.ts'
export type { ModelProvider, ProviderApi } from './models/registry/catalogue.ts'
export {
  cycleModels,
  type CycleOutcome,
  referenceOf,
  type KeyState,
  type ListedModel,
  type ModelInfo,
  RegistryError,
  type RegistryErrorCode,
} from './models/registry/model-info.ts'
export type { KeyCheck } from './models/registry/key-check.ts'
export { localServers, type FoundServer, type LocalServer } from './models/registry/local-servers.ts'
export {
  createModelRegistry,
  type ModelRegistry,
  type ModelRegistryOptions,
  type OpenedModel,
  type OpenModelOptions,
  type CredentialSource,
} from './models/registry/model-registry.ts'
export type { ProviderAddition } from './models/registry/provider-additions.ts'
export { registryModels, type RegistryModelsOptions } from './agent/model-choice.ts'
export type { MissingModel } from './agent/model-choice.ts'
export type { IdleLimits } from './models/idle-timeout.ts'
export type { PriceTier } from './models/model-prices.ts'
export type { ChatHostId } from './models/hosts.ts'
export type { FoundModel } from './models/registry/local-servers.ts'
export type { ModelReference, ProviderKey } from './models/registry/model-registry.ts'
export type { ModelAddition } from './models/registry/provider-additions.ts'
export type { ModelOrigin } from './models/registry/model-info.ts'
