import type { Clock, ListedModel, LoadedSettings, Model } from '@tapetree/agent'

/** What the routes know beside sessions. All of it is asked for by tenant: what one sees, another need not. */
export interface ApiParts {
  models: (tenant: string) => Promise<readonly ListedModel[]>
  /** The model that an answer names, to make its request again. Absent or undefined: nothing can be said of such requests. */
  openModel?: (tenant: string, model: { provider: string; modelId: string }) => Promise<Model | undefined>
  agents: (tenant: string) => Promise<readonly AgentSummary[]>
  /** Without a folder: what holds wherever there is no project. */
  settings: (
    tenant: string,
    cwd: string | undefined,
  ) => Promise<Pick<LoadedSettings, 'values' | 'origins' | 'problems'>>
  /** Absolute folders. Sessions work inside of them, and nothing outside is shown. */
  roots: (tenant: string) => readonly string[]
  /** Why requests should go elsewhere just now; undefined where all is well. */
  notReady?: () => string | undefined | Promise<string | undefined>
  /** Aborted when the server goes down: whoever waits or streams is let go. */
  closing: AbortSignal
  clock?: Clock
}

export interface AgentSummary {
  id: string
  name: string
  description?: string
}
