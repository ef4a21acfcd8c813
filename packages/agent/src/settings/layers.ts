import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { isWider, type PermissionMode } from '../permissions/modes.ts'
import type { RuleLayers } from '../permissions/rules.ts'
import { readBounded, configFolder, type Environment } from './config-files.ts'
import type { Settings } from './built-in.ts'
import {
  checkSettings,
  pathText,
  parseSettingsFile,
  projectSettingsFiles,
  settingsFileNames,
  type SettingFault,
  type FileSettings,
} from './check-settings.ts'
import { limitProject } from './limit-project.ts'
import { mergeSettings, type Layer, type Origin } from './merge-settings.ts'
import type { CheckedSettings, SettingsInput } from './schema.ts'
import type { ProjectTrust } from './trust.ts'
import { visibleName } from '../util/visible-text.ts'
import { describeSettings, type SettingRow } from './describe.ts'
import { nearestName } from '../util/edit-distance.ts'

export interface LoadSettingsOptions {
  /** Absolute, as is the home folder. */
  cwd: string
  home: string
  env: Environment
  /** What was said on the command line. */
  flags?: SettingsInput
  /** What the project says counts only if it is trusted. Absent: there is none. */
  trust?: ProjectTrust
}

export type SettingsProblem = {
  /** A sentence that names file, line and setting, safe to show. */
  message: string
  /** Absent for variables and flags. */
  file?: string
  line?: number
  column?: number
  /** The setting, if it is about one. */
  key?: string
} & (
  | { type: 'malformed' } // nothing of this file holds
  | { type: 'invalid' } // this setting does not hold
  | { type: 'refused' } // a project may not set this
  | { type: 'ignored' } // something lies there that is not read
)

export interface LoadedSettings {
  values: Settings
  /** Where each value comes from, by key; see `MergedSettings`. */
  origins: ReadonlyMap<string, Origin>
  /** For the gate. What a project allows stays apart from what the user does. */
  rules: RuleLayers
  /** Set if rules may be missing: a session with a wider mode in its log is narrowed to this one. */
  maxMode?: PermissionMode
  problems: SettingsProblem[]
}

const maxUserFileBytes = 1024 * 1024

/** Flags over environment over trusted project over user over built-in. What is wrong in one layer leaves the others as they are. */
export async function loadSettings(options: LoadSettingsOptions): Promise<LoadedSettings> {
  const { cwd, home, env, flags = {}, trust } = options
  const problems: SettingsProblem[] = []
  const user = await readUser(configFolder({ home, env }), { home, problems })
  const project = trust?.state === 'trusted' ? await readTrusted(trust, { user, home, problems }) : []
  const environment = readVariables(env, { cwd, home, problems })
  const layers = [...user, ...project, ...environment, readFlags(flags, { cwd, home, problems })]
  const { values, origins, rules } = mergeSettings(layers)
  const maxMode = narrowIfUnsure(values, origins, problems)
  return {
    values,
    origins,
    rules: {
      user: rules.filter(({ origin }) => origin.layer !== 'project').map(({ rule }) => rule),
      project: rules.filter(({ origin }) => origin.layer === 'project').map(({ rule }) => rule),
      session: [],
      trustsProject: trust?.state === 'trusted',
    },
    ...(maxMode && { maxMode }),
    problems,
  }
}

interface Reading {
  home: string
  problems: SettingsProblem[]
}

/** The user may keep their file elsewhere and link to it. */
async function readUser(folder: string, { home, problems }: Reading): Promise<Layer[]> {
  const found: { path: string; bytes: Uint8Array }[] = []
  for (const name of settingsFileNames) {
    const path = join(folder, name)
    const real = await realpath(path).catch(() => path)
    const result = await readBounded(real, maxUserFileBytes)
    if (result.type === 'read') found.push({ path, bytes: result.bytes })
    if (result.type === 'refused') {
      problems.push({ type: 'malformed', file: path, message: `${visibleName(path)} cannot be used. ${result.reason}` })
    }
  }
  const [file, ...others] = found
  if (!file) return []
  for (const other of others) problems.push(unreadFile(other.path, file.path))
  const parsed = await parseSettingsFile(file)
  problems.push(...fileProblems(file.path, parsed))
  return [fileLayer('user', file.path, { ...parsed, settings: withPaths(parsed.settings, dirname(file.path), home) })]
}

async function readTrusted(
  { project }: ProjectTrust & { state: 'trusted' },
  { user, home, problems }: Reading & { user: readonly Layer[] },
): Promise<Layer[]> {
  const [file, ...others] = projectSettingsFiles(project.files)
  if (!file) return []
  for (const other of others) problems.push(unreadFile(join(project.root, other.path), file.path))
  const path = join(project.root, file.path)
  const parsed = await parseSettingsFile(file)
  problems.push(...fileProblems(path, parsed))
  const { settings, refused } = limitProject(parsed.settings, { user: mergeSettings(user).values, project })
  for (const fault of refused) problems.push(problemAt('refused', path, { ...fault, line: parsed.lineOf(fault.path) }))
  return [fileLayer('project', path, { ...parsed, settings: withPaths(settings, dirname(path), home) })]
}

function readVariables(env: Environment, { cwd, home, problems }: Reading & { cwd: string }): Layer[] {
  const { value, variables, unknown } = readEnvironment(env)
  if (env['TAPETREE_HOME'] !== undefined && !isAbsolute(env['TAPETREE_HOME'])) {
    problems.push({ type: 'invalid', message: 'TAPETREE_HOME is not used, because it is not an absolute path.' })
  }
  const { settings, faults } = checkSettings(value)
  const variableOf = (path: readonly PropertyKey[]): string | undefined =>
    variables.get(path.filter((part) => typeof part !== 'number').join('.'))
  for (const { path, message } of faults) {
    problems.push({
      type: 'invalid',
      key: pathText(path),
      message: `${variableOf(path) ?? pathText(path)}: ${message}`,
    })
  }
  for (const { variable, nearest } of unknown) {
    problems.push({
      type: 'invalid',
      message: `There is no variable ${visibleName(variable)}. Did you mean ${nearest}?`,
    })
  }
  const originOf: Layer['originOf'] = (path) => {
    const variable = variableOf(path)
    return variable === undefined ? {} : { variable }
  }
  return [{ name: 'environment', settings: withPaths(settings, cwd, home), originOf }]
}

function readFlags(flags: SettingsInput, { cwd, home, problems }: Reading & { cwd: string }): Layer {
  const { settings, faults } = checkSettings(flags)
  for (const { path, message } of faults) {
    problems.push({ type: 'invalid', key: pathText(path), message: `Flag for ${pathText(path)}: ${message}` })
  }
  return { name: 'flags', settings: withPaths(settings, cwd, home), originOf: () => ({}) }
}

function fileLayer(name: 'user' | 'project', file: string, { settings, lineOf }: FileSettings): Layer {
  return {
    name,
    settings,
    originOf: (path) => {
      const line = lineOf(path)
      return { file: visibleName(file), ...(line !== undefined && { line }) }
    },
  }
}

function withPaths(settings: CheckedSettings, folder: string, home: string): CheckedSettings {
  const whole = (path: string): string => (path.startsWith('~/') ? join(home, path.slice(2)) : resolve(folder, path))
  const { extensions, skillFolders, promptFolders } = settings
  return {
    ...settings,
    ...(extensions && { extensions: extensions.map(whole) }),
    ...(skillFolders && { skillFolders: skillFolders.map(whole) }),
    ...(promptFolders && { promptFolders: promptFolders.map(whole) }),
  }
}

function fileProblems(path: string, { malformed, faults }: FileSettings): SettingsProblem[] {
  const invalid = faults.map((fault) => problemAt('invalid', path, fault))
  if (!malformed) return invalid
  const { message, line, column } = malformed
  const place = line === undefined ? '' : `, line ${line}${column === undefined ? '' : `, column ${column}`}`
  return [
    {
      type: 'malformed',
      message: `${visibleName(path)}${place}: ${message}`,
      file: path,
      ...(line !== undefined && { line }),
      ...(column !== undefined && { column }),
    },
  ]
}

function problemAt(
  type: 'invalid' | 'refused',
  file: string,
  { path, message, line }: SettingFault & { line?: number | undefined },
): SettingsProblem {
  const key = pathText(path)
  const place = `${visibleName(file)}${line === undefined ? '' : `, line ${line}`}`
  return {
    type,
    file,
    key,
    message: `${place}: ${key === '' ? '' : `${key}: `}${message}`,
    ...(line !== undefined && { line }),
  }
}

function unreadFile(path: string, first: string): SettingsProblem {
  const message = `${visibleName(path)} is not read, because there is a ${basename(first)} beside it.`
  return { type: 'ignored', file: path, message }
}

/** Where what was to be asked or denied could not be read, nothing wider than asking holds. */
function narrowIfUnsure(
  values: Settings,
  origins: Map<string, Origin>,
  problems: SettingsProblem[],
): PermissionMode | undefined {
  const isUnsure = problems.some(
    ({ type, key }) =>
      type === 'malformed' || (type === 'invalid' && (key === 'permissions' || key?.startsWith('permissions.'))),
  )
  if (!isUnsure) return undefined
  if (!isWider(values.permissions.mode, 'ask')) return 'ask'
  const message = `The mode is ask, not ${values.permissions.mode}, because there may be rules that could not be read.`
  problems.push({ type: 'invalid', key: 'permissions.mode', message })
  values.permissions.mode = 'ask'
  origins.set('permissions.mode', { layer: 'built-in' })
  return 'ask'
}

interface EnvironmentSettings {
  /** As if it stood in a file; not checked. */
  value: Record<string, unknown>
  /** The variable behind each key. */
  variables: ReadonlyMap<string, string>
  /** Variables that look like one of ours and are none. */
  unknown: { variable: string; nearest: string }[]
}

function readEnvironment(env: Environment): EnvironmentSettings {
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
