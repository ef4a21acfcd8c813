import type { Clock, ListedModel, LoadedSettings, Model } from '@tapetree/agent'

/** Data of the routes besides sessions, by tenant. */
export interface ApiParts {
  models: (tenant: string) => Promise<readonly ListedModel[]>
  /** Opens the model of an answer, to rebuild its request. Absent or undefined: the request cannot be verified. */
  openModel?: (tenant: string, model: { provider: string; modelId: string }) => Promise<Model | undefined>
  agents: (tenant: string) => Promise<readonly AgentSummary[]>
  /** Without a folder: the settings outside of any project. */
  settings: (
    tenant: string,
    cwd: string | undefined,
  ) => Promise<Pick<LoadedSettings, 'values' | 'origins' | 'problems'>>
  /** Absolute folders. Sessions work inside of them, and nothing outside is shown. */
  roots: (tenant: string) => readonly string[]
  /** Why a load balancer should send requests elsewhere; undefined if the server is ready. */
  notReady?: () => string | undefined | Promise<string | undefined>
  /** Aborted on shutdown: ends long polls and streams. */
  closing: AbortSignal
  clock?: Clock
}

export interface AgentSummary {
  id: string
  name: string
  description?: string
}
