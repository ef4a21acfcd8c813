import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import type { Rule } from '../permissions/rules.ts'
import { visibleName } from '../util/visible-text.ts'
import { checkSettings, pathText, settingsFileNames } from './check-settings.ts'
import {
  changePrivateFile,
  configFolder,
  readBounded,
  SettingsError,
  writePrivateFile,
  type Environment,
} from './config-files.ts'
import type { settingsSchema } from './schema.ts'

type Input = z.input<typeof settingsSchema>

/**
 * The settings that a program may write for the user: a choice of model and looks. Everything that runs or allows
 * something is written by the user alone, apart from what the user allows in a project (see `allowInProject`).
 */
export interface SettingsChange {
  /** As `provider/id`. Null removes a setting. */
  model?: Input['model'] | null
  thinkingLevel?: Input['thinkingLevel'] | null
  theme?: NonNullable<Input['terminal']>['theme'] | null
  mode?: NonNullable<Input['permissions']>['mode'] | null
  /** Rules to add to those that the user allows in the project. Only rules that the user has just allowed. */
  allow?: readonly Rule[]
}

type Choice = Exclude<keyof SettingsChange, 'allow'>

/** Where each of them is in the file. */
const places: Record<Choice, readonly string[]> = {
  model: ['model'],
  thinkingLevel: ['thinkingLevel'],
  theme: ['terminal', 'theme'],
  mode: ['permissions', 'mode'],
}

const maxBytes = 1024 * 1024

/**
 * Changes the settings file of the user, or creates it. All other settings stay, in YAML with their comments. Rejects
 * with `malformed-file` if the file or a value is not valid; then nothing is written. `project` is the root of a project: the change
 * applies only there. Without it, it applies wherever nothing else is chosen.
 */
export async function changeUserSettings(
  change: SettingsChange,
  { project, ...place }: { home: string; env: Environment; project?: string },
): Promise<void> {
  const { allow = [], ...choices } = change
  const changes = changesOf(choices, project)
  if (changes.length > 0) await changeFile(place, () => changes)
  if (allow.length === 0) return
  if (project === undefined) throw new TypeError('Rules are allowed in a project.')
  await allowInProject({ root: project, rules: allow }, place)
}

/**
 * Adds rules to those that the user allows in a project. Only for rules that the user has just allowed. Rejects with `malformed-file` if the file
 * is not valid; then nothing is written.
 */
export async function allowInProject(
  { root, rules }: { root: string; rules: readonly Rule[] },
  place: { home: string; env: Environment },
): Promise<void> {
  const added = rules.filter(({ effect }) => effect === 'allow').map(writtenRule)
  await changeFile(place, (settings) => {
    const where = ['projects', root, 'allow']
    const known = where.reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], settings)
    const before: unknown[] = Array.isArray(known) ? known : []
    const isNew = (rule: unknown): boolean => !before.some((each) => JSON.stringify(each) === JSON.stringify(rule))
    const value = [...before, ...added.filter(isNew)]
    return value.length > before.length ? [{ place: where, value }] : []
  })
}

/** As the user would write it; an object if the words have blanks. */
function writtenRule({ type, match }: Rule): string | { type: string; match: string | string[] } {
  const words = typeof match === 'string' ? [match] : match
  const isPlain = typeof match === 'string' ? /^\S(?:.*\S)?$/.test(match) : words.every((word) => /^\S+$/.test(word))
  return isPlain ? `${type} ${words.join(' ')}` : { type, match: typeof match === 'string' ? match : [...match] }
}

async function changeFile(
  { home, env }: { home: string; env: Environment },
  changesTo: (settings: Readonly<Record<string, unknown>>) => readonly Change[],
): Promise<void> {
  const { path, format } = await settingsFile(configFolder({ home, env }))
  await changePrivateFile(path, async () => {
    const read = await readBounded(path, maxBytes)
    if (read.type === 'refused') throw malformed(path, read.reason)
    const bytes = read.type === 'read' ? read.bytes : new Uint8Array()
    const text = await changedText({ path, format }, bytes, changesTo)
    // Loaded on demand: the parser is large.
    const { readSettingsText } = await import('./settings-text.ts')
    const result = readSettingsText(Buffer.from(text), format)
    if (result.type === 'malformed') throw malformed(path, `With the change: ${result.message}`)
    await writePrivateFile(path, text)
  })
}

interface Change {
  place: readonly string[]
  /** Undefined removes it. */
  value: unknown
}

function changesOf(change: Pick<SettingsChange, Choice>, project: string | undefined): Change[] {
  return Object.entries(places).flatMap(([name, place]) => {
    const value = change[name as Choice]
    if (value === undefined) return []
    return [{ place: project === undefined ? place : ['projects', project, name], value: value ?? undefined }]
  })
}

interface SettingsFile {
  path: string
  format: 'json' | 'yaml'
}

/** The file that is read, without links: the user may keep it elsewhere. */
async function settingsFile(folder: string): Promise<SettingsFile> {
  for (const name of settingsFileNames) {
    const path = await realpath(join(folder, name)).catch(() => undefined)
    if (path !== undefined) return { path, format: name.endsWith('.json') ? 'json' : 'yaml' }
  }
  return { path: join(folder, 'settings.json'), format: 'json' }
}

async function changedText(
  { path, format }: SettingsFile,
  bytes: Uint8Array,
  changesTo: (settings: Readonly<Record<string, unknown>>) => readonly Change[],
): Promise<string> {
  // Loaded on demand: the parser is large.
  const [{ readSettingsText }, { parseDocument }] = await Promise.all([import('./settings-text.ts'), import('yaml')])
  const read = readSettingsText(bytes, format)
  if (read.type === 'malformed') throw malformed(path, read.message)
  const value = structuredClone(read.written.value) as Record<string, unknown>
  const changes = changesTo(value)
  for (const { place, value: wanted } of changes) setIn(value, place, wanted)
  const fault = checkSettings(value).faults.find((each) => changes.some(({ place }) => startsWith(each.path, place)))
  if (fault) throw malformed(path, `${pathText(fault.path)}: ${fault.message}`)
  if (format === 'json') return `${JSON.stringify(value, undefined, 2)}\n`
  const document = parseDocument(Buffer.from(bytes).toString('utf8'), { uniqueKeys: false })
  for (const { place, value: wanted } of changes) {
    if (wanted !== undefined) document.setIn(place, wanted)
    else if (document.hasIn(place)) document.deleteIn(place)
  }
  return document.toString()
}

function setIn(value: Record<string, unknown>, place: readonly string[], wanted: unknown): void {
  const [name = '', ...rest] = place
  if (rest.length > 0) {
    const inner = value[name]
    if (typeof inner === 'object' && inner !== null) setIn(inner as Record<string, unknown>, rest, wanted)
    else if (wanted !== undefined) setIn((value[name] = {}), rest, wanted)
  } else if (wanted === undefined) Reflect.deleteProperty(value, name)
  else value[name] = wanted
}

function startsWith(path: readonly PropertyKey[], start: readonly string[]): boolean {
  return start.every((name, index) => path[index] === name)
}

function malformed(path: string, reason: string): SettingsError {
  return new SettingsError('malformed-file', `${visibleName(path)} was not changed. ${reason}`)
}
