import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { isWider, type PermissionMode } from '../permissions/modes.ts'
import type { Rule, RuleLayers } from '../permissions/rules.ts'
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
  /** Absolute, like the home folder. */
  cwd: string
  home: string
  env: Environment
  /** Settings from the command line. */
  flags?: SettingsInput
  /** The settings of the project apply only if it is trusted. Absent: there is no project. */
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
  | { type: 'malformed' } // the whole file is ignored
  | { type: 'invalid' } // this setting is ignored
  | { type: 'refused' } // a project may not set this
  | { type: 'ignored' } // a file that is not read
)

export interface LoadedSettings {
  values: Settings
  /** The source of each value, by key; see `MergedSettings`. */
  origins: ReadonlyMap<string, Origin>
  /** For the gate. Allow rules of a project stay separate from those of the user. */
  rules: RuleLayers
  /** The same rules in the order of the layers, each with its source. */
  ruleOrigins: readonly { rule: Rule; origin: Origin }[]
  /** Set if rules may be missing: a session with a wider mode in its log is narrowed to this one. */
  maxMode?: PermissionMode
  problems: SettingsProblem[]
}

const maxUserFileBytes = 1024 * 1024

/**
 * Flags win over environment, the choices of the user for this project, trusted project, user and defaults, in this order. A
 * fault in one layer does not affect the others.
 */
export async function loadSettings(options: LoadSettingsOptions): Promise<LoadedSettings> {
  const { cwd, home, env, flags = {}, trust } = options
  const problems: SettingsProblem[] = []
  const user = await readUser(configFolder({ home, env }), { home, problems })
  const project = trust?.state === 'trusted' ? await readTrusted(trust, { user, home, problems }) : []
  const own = trust ? choicesIn(trust.project.root, user) : []
  const environment = readVariables(env, { cwd, home, problems })
  const layers = [...user, ...project, ...own, ...environment, readFlags(flags, { cwd, home, problems })]
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
    ruleOrigins: rules,
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

/** What the user has chosen for one project, in their own file. */
function choicesIn(root: string, user: readonly Layer[]): Layer[] {
  return user.flatMap(({ name, settings, originOf }) => {
    const chosen = settings.projects?.[root]
    if (!chosen) return []
    const { model, thinkingLevel, mode, theme } = chosen
    return [
      {
        name,
        settings: {
          ...(model !== undefined && { model }),
          ...(thinkingLevel && { thinkingLevel }),
          ...(mode && { permissions: { mode } }),
          ...(theme && { terminal: { theme } }),
        },
        originOf: (path) => originOf(['projects', root, ...path.slice(-1)]),
      },
    ]
  })
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

/** If ask or deny rules could not be read, the mode is at most `ask`. */
function narrowIfUnsure(
  values: Settings,
  origins: Map<string, Origin>,
  problems: SettingsProblem[],
): PermissionMode | undefined {
  // A file that is ignored as a whole has the key ''.
  const isUnsure = problems.some(
    ({ type, key }) =>
      type === 'malformed' ||
      (type === 'invalid' && (key === '' || key === 'permissions' || key?.startsWith('permissions.'))),
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
  /** As in a file; not checked. */
  value: Record<string, unknown>
  /** The variable of each key. */
  variables: ReadonlyMap<string, string>
  /** Unknown variables that resemble one of ours. */
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

/** An invalid number or boolean is unchanged; the schema reports what is expected. */
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
