import type { Rule } from '../permissions/rules.ts'
import { builtIn, type Settings } from './built-in.ts'
import type { CheckedSettings } from './schema.ts'

export type LayerName = 'built-in' | 'user' | 'project' | 'environment' | 'flags'

/** The source of a value. */
export interface Origin {
  layer: LayerName
  /** The file, safe to show and absolute. */
  file?: string
  line?: number
  variable?: string
}

export interface Layer {
  name: LayerName
  settings: CheckedSettings
  originOf: (path: readonly PropertyKey[]) => Omit<Origin, 'layer'>
}

export interface MergedSettings {
  values: Settings
  /** By key (`permissions.mode`, `mcpServers.github`); for joined lists by item (`extensions.0`). */
  origins: Map<string, Origin>
  rules: { rule: Rule; origin: Origin }[]
}

/** Lists of all layers are joined; every other value is that of the highest layer that has one. */
const joined = ['extensions', 'skillFolders', 'promptFolders', 'redaction.allow']

/** From the lowest layer to the highest. */
export function mergeSettings(layers: readonly Layer[]): MergedSettings {
  const leaves = new Map<string, { path: readonly string[]; value: unknown }>()
  const origins = new Map<string, Origin>()
  const rules: MergedSettings['rules'] = []
  for (const layer of [builtInLayer, ...layers]) {
    for (const { path, value } of leavesOf(layer.settings)) {
      const key = path.join('.')
      const origin: Origin = { layer: layer.name, ...layer.originOf(path) }
      if (isRuleList(key)) {
        for (const [index, rule] of (value as Rule[]).entries()) {
          rules.push({ rule, origin: { layer: layer.name, ...layer.originOf([...path, index]) } })
        }
      } else if (isJoined(key)) {
        const before = (leaves.get(key)?.value ?? []) as unknown[]
        const added = Array.isArray(value) ? value : [value]
        for (const index of added.keys()) origins.set(`${key}.${before.length + index}`, origin)
        leaves.set(key, { path, value: [...before, ...added] })
      } else {
        leaves.set(key, { path, value })
        origins.set(key, origin)
      }
    }
  }
  return { values: assemble([...leaves.values()]), origins, rules }
}

const builtInLayer: Layer = { name: 'built-in', settings: builtIn, originOf: () => ({}) }

function isRuleList(key: string): boolean {
  return key === 'permissions.allow' || key === 'permissions.ask' || key === 'permissions.deny'
}

function isJoined(key: string): boolean {
  return key.startsWith('hooks.') || key === 'systemPrompt.append' || joined.includes(key)
}

/** Their entries have names that the user chooses. */
const namedEntries: ReadonlySet<PropertyKey> = new Set(['mcpServers', 'providers', 'projects', 'agents'])

interface Leaf {
  path: readonly string[]
  value: unknown
}

/** An entry with a name that the user chooses (a server, a provider) is one value: two entries are never mixed. */
function leavesOf(settings: object, path: readonly string[] = []): Leaf[] {
  return Object.entries(settings).flatMap(([name, value]: [string, unknown]) => {
    const here = [...path, name]
    const isGroup = typeof value === 'object' && value !== null && !Array.isArray(value)
    const isEntry = path.length === 1 && namedEntries.has(path[0] ?? '')
    return isGroup && !isEntry ? leavesOf(value, here) : value === undefined ? [] : [{ path: here, value }]
  })
}

function assemble(leaves: readonly Leaf[]): Settings {
  const values = {
    limits: { run: {}, session: {} },
    sandbox: { limits: {} },
    hooks: {},
    mcpServers: {},
    agents: {},
    providers: {},
    projects: {},
    redaction: { allow: [] },
    systemPrompt: { append: [] },
    extensions: [],
    skillFolders: [],
    promptFolders: [],
  }
  for (const { path, value } of leaves) {
    let at: Record<string, unknown> = values
    for (const name of path.slice(0, -1)) at = (at[name] ??= {}) as Record<string, unknown>
    at[path.at(-1) ?? ''] = value
  }
  // Every layer was checked by the schema, and the lowest has all required values.
  return values as unknown as Settings
}
