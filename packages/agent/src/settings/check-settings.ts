import type { z } from 'zod'
import { knownNames } from './describe.ts'
import { nearestName } from '../util/edit-distance.ts'
import { settingsSchema, type CheckedSettings } from './schema.ts'
import { visibleName } from '../util/visible-text.ts'
import type { ProjectFile } from './project.ts'
import type { ReadSettings } from './settings-text.ts'

export interface SettingFault {
  path: readonly PropertyKey[]
  message: string
}

/** More than this is not a typo. */
const maxFaults = 100

/**
 * The valid part of these settings, and the faults. A wrong or unknown setting is ignored and named; the others apply,
 * so that files of an older or newer version can still be read.
 */
export function checkSettings(input: unknown): { settings: CheckedSettings; faults: SettingFault[] } {
  if (!isObject(input) || Array.isArray(input)) {
    return { settings: {}, faults: [{ path: [], message: 'Settings must be an object with names and values.' }] }
  }
  const current = structuredClone(input)
  const faults: SettingFault[] = []
  while (faults.length < maxFaults) {
    const result = settingsSchema.safeParse(current)
    if (result.success) return { settings: result.data, faults }
    // From the end, so that the indexes of the other items stay valid.
    const issue = result.error.issues.at(-1)
    if (!issue) break
    const path = issue.code === 'unrecognized_keys' ? issue.path : entryOf(issue.path)
    faults.unshift(...faultsOf(issue))
    if (issue.code === 'unrecognized_keys') for (const key of issue.keys) remove(current, [...path, key])
    else remove(current, path)
  }
  const message = 'There are too many mistakes. The whole file is ignored.'
  return { settings: {}, faults: [...faults.slice(0, 10), { path: [], message }] }
}

function faultsOf(issue: z.core.$ZodIssue): SettingFault[] {
  if (issue.code !== 'unrecognized_keys') return [{ path: issue.path, message: messageOf(issue) }]
  const known = knownNames(issue.path)
  return issue.keys.slice(0, maxFaults).map((key) => {
    const nearest = nearestName(key, known)
    const hint = nearest === undefined ? '' : ` Did you mean ${nearest}?`
    const message = `There is no setting with this name.${hint}`
    return { path: [...issue.path, key], message }
  })
}

function messageOf(issue: z.core.$ZodIssue): string {
  const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message
  return /[.!?]$/.test(message) ? message : `${message}.`
}

/** An item of a list, or an entry with a name that the user chooses, is valid as a whole or not at all. */
function entryOf(path: readonly PropertyKey[]): readonly PropertyKey[] {
  if (path[0] === 'mcpServers' || path[0] === 'providers' || path[0] === 'agents') return path.slice(0, 2)
  const place = path.findIndex((part) => typeof part === 'number')
  return place < 0 ? path : path.slice(0, place + 1)
}

function remove(from: object, path: readonly PropertyKey[]): void {
  let at: unknown = from
  for (const part of path.slice(0, -1)) at = isObject(at) ? (at as Record<PropertyKey, unknown>)[part] : undefined
  const last = path.at(-1)
  if (!isObject(at) || last === undefined) return
  if (Array.isArray(at)) at.splice(Number(last), 1)
  else Reflect.deleteProperty(at, last)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

/** `permissions.deny.0`, safe to show. */
export function pathText(path: readonly PropertyKey[]): string {
  return path.map((part) => visibleName(String(part))).join('.')
}

export const settingsFileNames = ['settings.json', 'settings.yaml', 'settings.yml']

interface SettingsFile {
  path: string
  bytes: Uint8Array
}

/** The settings of one file, and its problems. */
export interface FileSettings {
  settings: CheckedSettings
  malformed?: ReadSettings & { type: 'malformed' }
  faults: (SettingFault & { line?: number })[]
  lineOf: (path: readonly PropertyKey[]) => number | undefined
}

export async function parseSettingsFile({ path, bytes }: SettingsFile): Promise<FileSettings> {
  // Loaded on demand: the parser is large.
  const { readSettingsText } = await import('./settings-text.ts')
  const read = readSettingsText(bytes, path.endsWith('.json') ? 'json' : 'yaml')
  if (read.type === 'malformed') return { settings: {}, malformed: read, faults: [], lineOf: () => undefined }
  const { value, lineOf } = read.written
  const { settings, faults } = checkSettings(value)
  const nearestLine = (whole: readonly PropertyKey[]): number | undefined => {
    for (let length = whole.length; length > 0; length--) {
      const line = lineOf(whole.slice(0, length))
      if (line !== undefined) return line
    }
    return undefined
  }
  return {
    settings,
    faults: faults.map((fault) => {
      const line = nearestLine(fault.path)
      return { ...fault, ...(line !== undefined && { line }) }
    }),
    lineOf: nearestLine,
  }
}

/** The settings file at the root of a repository, and those beside it that are not read. */
export function projectSettingsFiles(files: readonly ProjectFile[]): ProjectFile[] {
  return settingsFileNames.flatMap((name) => files.find(({ path }) => path === `.tapetree/${name}`) ?? [])
}
