import type { Environment } from './config-folder.ts'
import { describeSettings, type SettingRow } from './describe.ts'
import { nearestName } from '../util/nearest-name.ts'

export interface EnvironmentSettings {
  /** As if it stood in a file; not checked. */
  value: Record<string, unknown>
  /** The variable behind each key. */
  variables: ReadonlyMap<string, string>
  /** Variables that look like one of ours and are none. */
  unknown: { variable: string; nearest: string }[]
}

export function readEnvironment(env: Environment): EnvironmentSettings {
  const rows = describeSettings()
  const variables = new Map<string, string>()
  const value: Record<string, unknown> = {}
  for (const row of rows) {
    const text = row.variable === undefined ? undefined : env[row.variable]
    if (row.variable === undefined || text === undefined || text === '') continue
    variables.set(row.key, row.variable)
    setAt(value, row.key.split('.'), parseVariable(text, row))
  }
  const known = ['TAPETREE_HOME', ...rows.flatMap(({ variable }) => variable ?? [])]
  const unknown = Object.keys(env).flatMap((variable) => {
    if (!variable.startsWith('TAPETREE_') || known.includes(variable)) return []
    const nearest = nearestName(
      variable.slice('TAPETREE_'.length),
      known.map((each) => each.slice('TAPETREE_'.length)),
    )
    return nearest === undefined ? [] : [{ variable, nearest: `TAPETREE_${nearest}` }]
  })
  return { value, variables, unknown }
}

/** What is no number or no yes and no is left as it is; the schema says what it should have been. */
function parseVariable(text: string, { type }: SettingRow): unknown {
  if (type.startsWith('list of ')) return text.split(',').map((part) => part.trim())
  if (type === 'boolean')
    return text === 'true' || text === '1' ? true : text === 'false' || text === '0' ? false : text
  if (type === 'number' || type === 'whole number') return text.trim() === '' ? text : numberOr(text)
  return text
}

function numberOr(text: string): number | string {
  const number = Number(text)
  return Number.isFinite(number) ? number : text
}

function setAt(value: Record<string, unknown>, path: readonly string[], leaf: unknown): void {
  const [name = '', ...rest] = path
  if (rest.length === 0) value[name] = leaf
  else setAt((value[name] ??= {}) as Record<string, unknown>, rest, leaf)
}
