import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { hosts } from '../hosts.ts'
import type { IdleLimits } from '../idle-timeout.ts'
import type { Model, ThinkingLevel } from '../model.ts'
import { nearestLevel } from '../provider-facts.ts'
import { costAt } from '../model-prices.ts'
import { providerFetch } from '../provider-fetch.ts'
import {
  catalogueModels,
  catalogueProviders,
  providerOf,
  loadCataloguePrices,
  type ModelProvider,
  type CataloguePrices,
} from './catalogue.ts'
import { checkKey, type KeyCheck } from './key-check.ts'
import {
  discoverLocalServers,
  localServers,
  localModels,
  localProvider,
  type FoundServer,
  type LocalServer,
} from './local-servers.ts'
import { makeModel } from './make-model.ts'
import { isUrl, referenceOf, RegistryError, type KeyState, type ListedModel, type ModelInfo } from './model-info.ts'
import { addProvider, assumedModel, type ProviderAddition } from './provider-additions.ts'
import { editDistance } from '../../util/edit-distance.ts'

export interface ModelRegistryOptions {
  /** User-defined providers from the settings. One with the name of a catalogue provider changes that provider. */
  providers?: Readonly<Record<string, ProviderAddition>>
  credentials?: CredentialSource
  env?: Readonly<Record<string, string | undefined>>
  /** For models, key checks and local servers. */
  fetch?: typeof globalThis.fetch
  /** Where to look for local servers. */
  localServers?: readonly LocalServer[]
  clock?: Clock
}

/** Either typed by a person, or the provider and id from a session, which must match exactly. */
export type ModelReference = string | { provider: string; id: string }

export interface OpenModelOptions {
  /** Requests with the same key share a cache, if the provider supports it. */
  promptCacheKey?: string
  idle?: Partial<IdleLimits>
}

export interface OpenedModel {
  model: Model
  info: ModelInfo
}

export interface ModelRegistry {
  /** All providers, including user-defined ones. */
  readonly providers: readonly ModelProvider[]
  /** All known models, and whether there is a key for them. Sends no request. */
  list(): Promise<ListedModel[]>
  /** The models of a chosen list, in its order, and why others are missing. */
  choose(references: readonly ModelReference[]): Promise<{ models: ListedModel[]; problems: RegistryError[] }>
  /**
   * `provider/id`, an id, or a part of one that matches only one model; `http://host:port/v1#id` for any server with
   * the Chat Completions format. If several match, those with a key take precedence. Throws `RegistryError`.
   */
  find(reference: ModelReference): Promise<ListedModel>
  /** Finds a model and makes it ready to call. Throws `RegistryError`, also if a key or a package is missing. */
  open(reference: ModelReference, options?: OpenModelOptions): Promise<OpenedModel>
  /** Discovers servers on this machine; from then on their models are listed. */
  discover(signal?: AbortSignal): Promise<readonly FoundServer[]>
  /** Asks the provider whether it accepts the key. */
  validateKey(providerId: string, options?: { timeoutMs?: number; signal?: AbortSignal }): Promise<KeyCheck>
}

export function createModelRegistry(options: ModelRegistryOptions = {}): ModelRegistry {
  return new Registry(options)
}

class Registry implements ModelRegistry {
  readonly #places: KeyPlaces
  readonly #fetch: typeof globalThis.fetch
  readonly #clock: Clock
  readonly #localServers: readonly LocalServer[]
  readonly #providers = new Map<string, ModelProvider>()
  readonly #models = new Map<string, ModelInfo>()
  #found: readonly FoundServer[] | undefined
  #prices: Promise<CataloguePrices> | undefined

  constructor(options: ModelRegistryOptions) {
    this.#places = { env: options.env ?? process.env, credentials: options.credentials }
    this.#fetch = options.fetch ?? providerFetch
    this.#clock = options.clock ?? systemClock
    this.#localServers = options.localServers ?? localServers
    for (const provider of catalogueProviders) this.#add(provider, catalogueModels(provider))
    for (const server of this.#localServers) this.#add(localProvider(server), [])
    for (const [id, addition] of Object.entries(options.providers ?? {})) {
      const { provider, models } = addProvider(id, addition, this.#providers.get(id) ?? configuredHost(id))
      this.#add(provider, models)
    }
  }

  get providers(): readonly ModelProvider[] {
    return [...this.#providers.values()]
  }

  async list(): Promise<ListedModel[]> {
    const prices = await this.#loadPrices()
    // One lookup for each provider: a keyring may be slow, or prompt the user.
    const states = new Map<string, KeyState>()
    for (const provider of this.#providers.values()) {
      if (this.#modelsOf(provider).length > 0) states.set(provider.id, await keyState(provider, this.#places))
    }
    return [...this.#models.values()].map((info) => ({
      ...this.#priced(info, prices),
      key: states.get(info.provider) ?? { type: 'not-needed' },
    }))
  }

  async choose(references: readonly ModelReference[]): Promise<{ models: ListedModel[]; problems: RegistryError[] }> {
    const models = new Map<string, ListedModel>()
    const problems: RegistryError[] = []
    for (const reference of references) {
      try {
        const model = await this.find(reference)
        models.set(referenceOf(model), model)
      } catch (error) {
        if (!(error instanceof RegistryError)) throw error
        problems.push(error)
      }
    }
    return { models: [...models.values()], problems }
  }

  async find(reference: ModelReference): Promise<ListedModel> {
    const info = await this.#resolve(reference)
    const key = await keyState(this.#providerOf(info), this.#places)
    return { ...this.#priced(info, await this.#loadPrices()), key }
  }

  async open(reference: ModelReference, options: OpenModelOptions = {}): Promise<OpenedModel> {
    const prices = await this.#loadPrices()
    const resolved = await this.#resolve(reference)
    const provider = this.#providerOf(resolved)
    const key = await findKey(provider, this.#places)
    const [variable] = provider.keyVariables
    if (!key && variable !== undefined) throw missingKey(provider, variable)
    const info = this.#priced(resolved, prices)
    const model = await makeModel(info, provider, {
      ...options,
      // Without a key, the packages would take that of their usual provider from the environment.
      apiKey: key?.value ?? '',
      fetch: this.#fetch,
      clock: this.#clock,
    })
    const costOf: Model['costOf'] = (usage) => {
      const current = this.#priced(resolved, prices).prices
      // The cost that the host reports takes precedence over our prices.
      return usage.cost ?? (current && costAt(current, usage))
    }
    return { model: { ...withLevels(model, info.thinkingLevels), costOf }, info }
  }

  async discover(signal?: AbortSignal): Promise<readonly FoundServer[]> {
    const found = await discoverLocalServers({
      servers: this.#localServers,
      fetch: this.#fetch,
      clock: this.#clock,
      ...(signal && { signal }),
    })
    for (const [reference, { source }] of this.#models) if (source === 'local') this.#models.delete(reference)
    for (const server of found) this.#add(localProvider(server), localModels(server), 'keep')
    this.#found = found
    return found
  }

  async validateKey(
    providerId: string,
    { timeoutMs = 10_000, signal }: { timeoutMs?: number; signal?: AbortSignal } = {},
  ): Promise<KeyCheck> {
    const provider = this.#knownProvider(providerId)
    const key = await findKey(provider, this.#places)
    const [variable] = provider.keyVariables
    if (!key && variable !== undefined) return { type: 'missing', message: missingKey(provider, variable).message }
    const limit = AbortSignal.any([AbortSignal.timeout(timeoutMs), ...(signal ? [signal] : [])])
    const check = await checkKey(provider, key?.value, { fetch: this.#fetch, signal: limit })
    signal?.throwIfAborted()
    return check
  }

  /** `keep`: settings of the user about a model or provider take precedence. */
  #add(provider: ModelProvider, models: readonly ModelInfo[], existing: 'replace' | 'keep' = 'replace'): void {
    if (existing === 'replace' || !this.#providers.has(provider.id)) this.#providers.set(provider.id, provider)
    for (const info of models) {
      const reference = referenceOf(info)
      if (existing === 'replace' || !this.#models.has(reference)) this.#models.set(reference, info)
    }
    // The key variable of a changed provider applies to all its models.
    for (const [reference, info] of this.#models) {
      if (info.provider === provider.id)
        this.#models.set(reference, withVariable(info, this.#knownProvider(provider.id)))
    }
  }

  async #resolve(reference: ModelReference): Promise<ModelInfo> {
    if (typeof reference !== 'string') return this.#exactly(reference)
    const text = reference.trim()
    if (isUrl(text)) return this.#exactly(splitUrl(text))
    const slash = text.indexOf('/')
    const provider = slash > 0 ? this.#providers.get(text.slice(0, slash)) : undefined
    return provider ? this.#ofProvider(provider, text.slice(slash + 1)) : this.#byName(text)
  }

  /** Also accepts a model that is no longer listed: a session can continue with it. */
  async #exactly({ provider: providerId, id }: { provider: string; id: string }): Promise<ModelInfo> {
    if (isUrl(providerId)) return assumedModel(id, urlProvider(providerId), 'url')
    const provider = this.#knownProvider(providerId)
    if (this.#isLocal(provider) && !this.#found) await this.discover()
    return (
      this.#listedModel(provider, id) ??
      (await this.#unlisted(provider, id)) ??
      assumedModel(id, provider, this.#sourceOf(provider))
    )
  }

  async #ofProvider(provider: ModelProvider, name: string): Promise<ModelInfo> {
    if (this.#isLocal(provider) && !this.#found) await this.discover()
    const listed = this.#listedModel(provider, name)
    if (listed) return listed
    const own = this.#modelsOf(provider)
    if (this.#isLocal(provider) && own.length === 0) throw noLocalServer(provider)
    const unlisted = await this.#unlisted(provider, name)
    if (unlisted) return unlisted
    const [match, ...others] = matchModels(name, own)[0]?.[0] ?? []
    if (match && others.length === 0) return match
    if (match) throw ambiguous(`${provider.id}/${name}`, [match, ...others])
    // A user-defined server knows best what it serves.
    if (this.#sourceOf(provider) === 'user') return assumedModel(name, provider, 'user')
    throw this.#unknownModelOf(provider, name)
  }

  /** Suggests models of the provider, unless another provider has a model with exactly this name. */
  #unknownModelOf(provider: ModelProvider, name: string): RegistryError {
    const own = this.#modelsOf(provider)
    const elsewhere = [...this.#models.values()].filter(({ id }) => id === name)
    const near = [...new Set([...elsewhere.map(referenceOf), ...nearModels(name, own)])].slice(0, 3)
    const first = own.toSorted(
      (left, right) => Number(right.id === provider.defaultModel) - Number(left.id === provider.defaultModel),
    )
    const some = first.slice(0, 3).map(referenceOf)
    const hints =
      near.length > 0
        ? [`Did you mean ${near.join(' or ')}?`]
        : some.length > 0
          ? [`Models of ${provider.id} include ${some.join(', ')}.`]
          : []
    const message = [`There is no model ${shown(`${provider.id}/${name}`)}.`, ...hints].join(' ')
    return new RegistryError('unknown-model', message, { suggestions: near.length > 0 ? near : some })
  }

  async #byName(name: string): Promise<ModelInfo> {
    const all = [...this.#models.values()]
    const [groups] = matchModels(name, all)
    if (groups) return this.#theUsable(name, groups)
    const snapshot = all.find(({ id }) => isSnapshot(name, id))
    if (snapshot) return { ...snapshot, id: name, name }
    throw await this.#unknownModel(name, all)
  }

  /** The only model with a key in the first group that has any; without keys, the only model of the first group. */
  async #theUsable(name: string, groups: readonly ModelInfo[][]): Promise<ModelInfo> {
    for (const group of groups) {
      const states = await Promise.all(group.map((info) => keyState(this.#providerOf(info), this.#places)))
      const [usable, ...others] = group.filter((_, index) => states[index]?.type !== 'missing')
      if (usable && others.length === 0) return usable
      if (usable) throw ambiguous(name, [usable, ...others])
    }
    const [first, ...others] = groups[0] ?? []
    if (first && others.length === 0) return first
    throw ambiguous(name, groups.flat())
  }

  /** A model that the catalogue does not list, but that has a price. */
  async #unlisted(provider: ModelProvider, id: string): Promise<ModelInfo | undefined> {
    const snapshot = this.#modelsOf(provider).find((info) => isSnapshot(id, info.id))
    if (snapshot) return { ...snapshot, id, name: id }
    const published = (await this.#loadPrices()).publishedModel(provider, id)
    if (!published) return undefined
    const assumed = assumedModel(id, provider, 'catalogue')
    const contextWindow = published.contextWindow ?? assumed.contextWindow
    return { ...assumed, contextWindow, maxOutputTokens: Math.min(assumed.maxOutputTokens, contextWindow) }
  }

  async #unknownModel(name: string, models: readonly ModelInfo[]): Promise<RegistryError> {
    const suggestions = [...new Set(nearModels(name, models))]
    const usable = suggestions.length > 0 ? [] : await this.#usableModels()
    const hints = [
      ...(suggestions.length > 0 ? [`Did you mean ${suggestions.join(' or ')}?`] : []),
      ...(usable.length > 0 ? [`Available models include ${usable.join(', ')}.`] : []),
    ]
    const message = [`There is no model ${shown(name)}.`, ...hints].join(' ')
    return new RegistryError('unknown-model', message, { suggestions })
  }

  /** One model for each of the first few providers that have a key. */
  async #usableModels(): Promise<string[]> {
    const usable: string[] = []
    for (const provider of this.#providers.values()) {
      const own = this.#modelsOf(provider)
      const model = own.find(({ id }) => id === provider.defaultModel) ?? own[0]
      if (!model || (await keyState(provider, this.#places)).type === 'missing') continue
      usable.push(referenceOf(model))
      if (usable.length === 3) break
    }
    return usable
  }

  #listedModel(provider: ModelProvider, id: string): ModelInfo | undefined {
    return this.#models.get(referenceOf({ provider: provider.id, id }))
  }

  #modelsOf(provider: ModelProvider): ModelInfo[] {
    return [...this.#models.values()].filter((info) => info.provider === provider.id)
  }

  #isLocal({ id }: ModelProvider): boolean {
    return this.#localServers.some((server) => server.id === id)
  }

  #sourceOf(provider: ModelProvider): 'catalogue' | 'local' | 'user' {
    if (this.#isLocal(provider)) return 'local'
    return catalogueProviders.some(({ id }) => id === provider.id) ? 'catalogue' : 'user'
  }

  #providerOf(info: ModelInfo): ModelProvider {
    return isUrl(info.provider) ? urlProvider(info.provider) : this.#knownProvider(info.provider)
  }

  #knownProvider(id: string): ModelProvider {
    const provider = this.#providers.get(id)
    if (provider) return provider
    const ids = [...this.#providers.keys()]
    throw new RegistryError(
      'unknown-provider',
      `There is no provider ${shown(id)}. Known providers: ${ids.join(', ')}.`,
    )
  }

  /** With the current prices, unless the user configured others. */
  #priced(info: ModelInfo, catalogue: CataloguePrices): ModelInfo {
    const now = new Date(this.#clock.now())
    const prices = info.prices ?? catalogue.pricesOf(this.#providerOf(info), info.id, now)
    return prices ? { ...info, prices } : info
  }

  #loadPrices(): Promise<CataloguePrices> {
    return (this.#prices ??= loadCataloguePrices())
  }
}

/** A known host whose models only the user can name. */
function configuredHost(id: string): ModelProvider | undefined {
  const host = hosts.find((each) => each.id === id)
  return host && providerOf(host)
}

/** An unsupported level becomes the nearest supported one. */
function withLevels(model: Model, levels: readonly ThinkingLevel[]): Model {
  return {
    ...model,
    prepare: (request) => {
      const { thinkingLevel } = request
      return model.prepare({ ...request, thinkingLevel: nearestLevel(thinkingLevel, levels) ?? thinkingLevel })
    },
  }
}

function withVariable(info: ModelInfo, { keyVariables: [keyVariable] }: ModelProvider): ModelInfo {
  const { keyVariable: _, ...rest } = info
  return { ...rest, ...(keyVariable !== undefined && { keyVariable }) }
}

/** `claude-opus-4-5-20251101` is a snapshot of `claude-opus-4-5`. */
function isSnapshot(id: string, of: string): boolean {
  return id.startsWith(`${of}-`) && /^-(?:\d{8}|\d{4}-\d{2}-\d{2})$/.test(id.slice(of.length))
}

function ambiguous(name: string, matching: readonly ModelInfo[]): RegistryError {
  const suggestions = [...new Set(matching.map(referenceOf))]
  const some = suggestions.slice(0, 8).join(', ')
  const rest = suggestions.length > 8 ? ` and ${suggestions.length - 8} more` : ''
  return new RegistryError(
    'ambiguous-model',
    `${shown(name)} is ambiguous: it matches ${some}${rest}. Name one of them.`,
    {
      suggestions,
    },
  )
}

function noLocalServer({ name, baseUrl }: ModelProvider): RegistryError {
  return new RegistryError(
    'no-local-server',
    `${name} serves no model at ${baseUrl}. Start it, or load a model there, and try again.`,
  )
}

interface Named {
  provider: string
  id: string
}

/**
 * The models that a name may refer to, by quality of the match: exact, prefix, any part. Within each of them, models
 * whose id matches come before those whose id only ends with it, as with hosts. Ignores case.
 */
function matchModels<T extends Named>(name: string, models: readonly T[]): T[][][] {
  const wanted = name.toLowerCase()
  if (wanted === '') return []
  const whole = (model: T): string[] => [model.id.toLowerCase(), referenceOf(model).toLowerCase()]
  const fits: ((model: T) => boolean)[][] = [
    [(model) => whole(model).includes(wanted), (model) => lastPart(model.id) === wanted],
    [(model) => whole(model).some((each) => each.startsWith(wanted)), (model) => lastPart(model.id).startsWith(wanted)],
    [(model) => referenceOf(model).toLowerCase().includes(wanted)],
  ]
  return fits
    .map((ways) => ways.map((way) => models.filter(way)).filter((group) => group.length > 0))
    .filter((groups) => groups.length > 0)
}

/** The models that may have been meant, nearest first: with a few typos, or with a word in common. */
function nearModels(name: string, models: readonly Named[], count = 3): string[] {
  const wanted = name.toLowerCase().slice(0, 100)
  const words = wordsOf(lastPart(wanted))
  return models
    .map((model) => ({
      reference: referenceOf(model),
      distance: Math.min(
        editDistance(wanted, model.id.toLowerCase()),
        editDistance(wanted, referenceOf(model).toLowerCase()),
        editDistance(lastPart(wanted), lastPart(model.id)),
      ),
      hasWord: wordsOf(lastPart(model.id)).some((word) => words.includes(word)),
    }))
    .filter(({ distance, hasWord }) => hasWord || distance <= Math.max(2, wanted.length / 3))
    .sort((left, right) => left.distance - right.distance)
    .slice(0, count)
    .map(({ reference }) => reference)
}

/** `claude-sonet-7` has the words `claude` and `sonet`. Version numbers say nothing about the family. */
function wordsOf(id: string): string[] {
  return id.split(/[^a-z]+/).filter((word) => word.length >= 3 && !fillers.has(word))
}

const fillers = new Set(['latest', 'preview', 'model', 'instruct'])

function lastPart(id: string): string {
  return id.slice(id.lastIndexOf('/') + 1).toLowerCase()
}

/** Stores keys outside of the environment: a keyring, a file. */
export interface CredentialSource {
  /** `origin` describes where the key comes from, for display. */
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

/** The environment takes precedence, as everywhere. */
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
    `There is no key for ${provider.name}. Set the environment variable ${variable}, or store a key for ${provider.id} in the system keyring or credentials.json.`,
  )
}

/** A server without a name: a session stores its URL, so that it is found again. */
function urlProvider(url: string): ModelProvider {
  return { id: url, name: url, api: 'openai-compatible', baseUrl: url, keyVariables: [] }
}

/** Splits `http://host:port/v1#model` into provider and model. */
export function splitUrl(text: string): { provider: string; id: string } {
  const [base = '', id = ''] = text.split(/#(.*)/s)
  if (!URL.canParse(base) || id === '') {
    throw new RegistryError(
      'invalid-reference',
      `${shown(text)} names no model. Use the form http://host:port/v1#model.`,
    )
  }
  const { username, password, search } = new URL(base)
  if (username !== '' || password !== '' || search !== '') {
    throw new RegistryError(
      'invalid-reference',
      'The URL of a model must not contain a user name, password or query, because sessions store it. Add the server to the settings, with the variable of its key.',
    )
  }
  return { provider: base.replace(/\/+$/, ''), id }
}

/** Quoted, short, and without control or bidirectional characters. */
function shown(text: string): string {
  const plain = text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '\uFFFD')
  return `"${plain.length > 100 ? `${plain.slice(0, 100)}…` : plain}"`
}
