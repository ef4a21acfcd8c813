import { z } from 'zod'
import { systemClock, type Clock } from '@tapetree/session/util/wait'
import { hosts } from '../hosts.ts'
import type { ThinkingLevel } from '../model.ts'
import { providerFetch } from '../provider-fetch.ts'
import { limitedJson } from './limited-json.ts'
import { modelIdPattern, assumedModel } from './provider-additions.ts'
import type { ModelProvider } from './catalogue.ts'
import type { ModelInfo } from './model-info.ts'

const localServerIds = ['ollama', 'lmstudio', 'llamacpp'] as const
export type LocalServerId = (typeof localServerIds)[number]

export interface LocalServer {
  id: LocalServerId
  name: string
  port: number
}

export const localServers: readonly LocalServer[] = localServerIds.flatMap((id) => {
  const { name, localPort } = hosts.find((host) => host.id === id) ?? {}
  return name === undefined || localPort === undefined ? [] : [{ id, name, port: localPort }]
})

export interface FoundServer extends LocalServer {
  baseUrl: string
  models: FoundModel[]
}

/** What the server reports about a model; it may report only the id. */
export interface FoundModel {
  id: string
  contextWindow?: number
  images?: boolean
  thinkingLevels?: readonly ThinkingLevel[]
}

export interface DiscoveryOptions {
  servers?: readonly LocalServer[]
  /** For all servers together. Later answers are ignored. */
  budgetMs?: number
  fetch?: typeof globalThis.fetch
  clock?: Clock
  signal?: AbortSignal
}

/** Queries only this machine. An invalid answer means that nothing was found. */
export async function discoverLocalServers(options: DiscoveryOptions = {}): Promise<FoundServer[]> {
  const { servers = localServers, budgetMs = 300, fetch = providerFetch, clock = systemClock, signal } = options
  const budget = new AbortController()
  const finished = new AbortController()
  const stop = AbortSignal.any([budget.signal, ...(signal ? [signal] : [])])
  const spent = clock.wait(budgetMs, finished.signal).then(
    () => budget.abort(),
    () => {}, // all have answered before
  )
  const found = await Promise.all(servers.map((server) => look(server, { fetch, signal: stop })))
  finished.abort()
  await spent
  signal?.throwIfAborted()
  return found.filter((server) => server !== undefined)
}

interface Asking {
  fetch: typeof globalThis.fetch
  signal: AbortSignal
}

async function look(server: LocalServer, asking: Asking): Promise<FoundServer | undefined> {
  const origin = `http://127.0.0.1:${server.port}`
  const ask: Ask = async (schema, path, body) => {
    try {
      const json = await limitedJson(`${origin}${path}`, { ...asking, maxBytes: maxAnswerBytes, body })
      const parsed = schema.safeParse(json)
      return parsed.success ? parsed.data : undefined
    } catch {
      return undefined // missing, too slow, or another program on this port
    }
  }
  const models = await lookers[server.id](ask)
  return models && { ...server, baseUrl: `${origin}/v1`, models: uniqueModels(models) }
}

type Ask = <T>(schema: z.ZodType<T>, path: string, body?: unknown) => Promise<T | undefined>

const maxAnswerBytes = 1024 * 1024
const maxModels = 200
/** Ollama is queried once for each of its models. */
const maxQuestions = 32

const lookers: Record<LocalServerId, (ask: Ask) => Promise<FoundModel[] | undefined>> = {
  ollama: askOllama,
  lmstudio: askLmStudio,
  llamacpp: askLlamaCpp,
}

/** A list without its invalid items. */
function readable<T>(item: z.ZodType<T>): z.ZodType<T[]> {
  return z.array(z.unknown()).transform((items) =>
    items.slice(0, maxModels).flatMap((each) => {
      const parsed = item.safeParse(each)
      return parsed.success ? [parsed.data] : []
    }),
  )
}

/** An invalid value counts as absent. */
function optional<T>(schema: z.ZodType<T>): z.ZodType<T | undefined> {
  return schema.optional().catch(undefined)
}

const modelId = z.string().regex(modelIdPattern)
const tokenCount = optional(z.number().int().positive().max(100_000_000))
const strings = optional(z.array(z.string()))

const ollamaTags = z.object({ models: readable(z.object({ name: modelId })) })
const ollamaRunning = z.object({ models: readable(z.object({ name: modelId, context_length: tokenCount })) })
const ollamaModel = z.object({
  capabilities: strings,
  parameters: optional(z.string()),
  model_info: optional(z.record(z.string(), z.unknown())),
})

async function askOllama(ask: Ask): Promise<FoundModel[] | undefined> {
  const [tags, running] = await Promise.all([ask(ollamaTags, '/api/tags'), ask(ollamaRunning, '/api/ps')])
  return (
    tags &&
    Promise.all(
      tags.models.map(async ({ name }, index) => {
        const told = index < maxQuestions ? await ask(ollamaModel, '/api/show', { model: name }) : undefined
        const loaded = running?.models.find((each) => each.name === name)?.context_length
        return ollamaFacts(name, told, loaded)
      }),
    ).then((models) => models.filter((model) => model !== undefined))
  )
}

/** A loaded model has the window it was loaded with, which is often smaller than its maximum. */
function ollamaFacts(
  id: string,
  told: z.output<typeof ollamaModel> | undefined,
  loadedWindow: number | undefined,
): FoundModel | undefined {
  const { capabilities, parameters = '', model_info: info = {} } = told ?? {}
  if (capabilities && !capabilities.includes('completion')) return undefined
  const set = tokenCount.parse(Number(/^num_ctx\s+(\d+)\s*$/m.exec(parameters)?.[1] ?? Number.NaN))
  const [, own] = Object.entries(info).find(([key]) => key.endsWith('.context_length')) ?? []
  const contextWindow = loadedWindow ?? set ?? tokenCount.parse(own)
  return {
    id,
    ...(contextWindow !== undefined && { contextWindow }),
    ...(capabilities && { images: capabilities.includes('vision') }),
    ...(capabilities && !capabilities.includes('thinking') && { thinkingLevels: ['off'] as const }),
  }
}

const lmStudioModels = z.object({
  models: readable(
    z.object({
      key: modelId,
      type: z.string(),
      max_context_length: tokenCount,
      loaded_instances: optional(readable(z.object({ config: z.object({ context_length: tokenCount }) }))),
      capabilities: optional(z.object({ vision: optional(z.boolean()) })),
    }),
  ),
})
const lmStudioModelsBefore = z.object({
  data: readable(
    z.object({ id: modelId, type: z.string(), max_context_length: tokenCount, loaded_context_length: tokenCount }),
  ),
})

/** Versions before 0.4 have only the older list. */
async function askLmStudio(ask: Ask): Promise<FoundModel[] | undefined> {
  const [now, before, plain] = await Promise.all([
    ask(lmStudioModels, '/api/v1/models'),
    ask(lmStudioModelsBefore, '/api/v0/models'),
    ask(plainModels, '/v1/models'),
  ])
  if (now) {
    return now.models
      .filter(({ type }) => !type.startsWith('embedding'))
      .map(({ key, max_context_length: own, loaded_instances: instances, capabilities }) => ({
        id: key,
        ...windowOf(instances?.[0]?.config.context_length ?? own),
        ...(capabilities?.vision !== undefined && { images: capabilities.vision }),
      }))
  }
  if (before) {
    return before.data
      .filter(({ type }) => !type.startsWith('embedding'))
      .map(({ id, type, max_context_length: own, loaded_context_length: loaded }) => ({
        id,
        ...windowOf(loaded ?? own),
        images: type === 'vlm',
      }))
  }
  return plain?.data.map(({ id }) => ({ id }))
}

const plainModels = z.object({
  data: readable(z.object({ id: modelId, meta: optional(z.object({ n_ctx_train: tokenCount })) })),
})
const llamaCppProps = z.object({
  default_generation_settings: optional(z.object({ n_ctx: tokenCount })),
  modalities: optional(z.object({ vision: optional(z.boolean()) })),
})

async function askLlamaCpp(ask: Ask): Promise<FoundModel[] | undefined> {
  const [models, props] = await Promise.all([ask(plainModels, '/v1/models'), ask(llamaCppProps, '/props')])
  const vision = props?.modalities?.vision
  return models?.data.map(({ id, meta }) => ({
    // Without an alias it is the path of a file.
    id,
    ...windowOf(props?.default_generation_settings?.n_ctx ?? meta?.n_ctx_train),
    ...(vision !== undefined && { images: vision }),
  }))
}

function windowOf(contextWindow: number | undefined): { contextWindow?: number } {
  return contextWindow === undefined ? {} : { contextWindow }
}

function uniqueModels(models: FoundModel[]): FoundModel[] {
  return [...new Map(models.map((model) => [model.id, model])).values()]
}

export function localProvider({ id, name, port }: LocalServer): ModelProvider {
  return { id, name, api: 'openai-compatible', baseUrl: `http://127.0.0.1:${port}/v1`, keyVariables: [] }
}

/** Facts that a server does not report get defaults. */
export function localModels(server: FoundServer): ModelInfo[] {
  const provider = localProvider(server)
  return server.models.map((found) => {
    const assumed = assumedModel(found.id, provider, 'local')
    const contextWindow = found.contextWindow ?? assumed.contextWindow
    return {
      ...assumed,
      ...found,
      contextWindow,
      maxOutputTokens: Math.min(assumed.maxOutputTokens, contextWindow),
    }
  })
}
