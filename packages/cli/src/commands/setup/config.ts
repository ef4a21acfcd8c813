import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { flag, type CommandRun } from '../../command-line/command.ts'
import { exitCodes } from '../../command-line/exit-code.ts'
import { harmless, harmlessLine } from '../../text/harmless.ts'
import { surroundingsOf } from '../../host/surroundings.ts'
import { write, printJson } from '../../command-line/io.ts'
import { outputTable } from '../../text/output-table.ts'
import { placesOf } from '../../host/places.ts'
import type { Rule } from '@tapetree/agent/permissions'
import { createRedactor, describeSettings, secretsOf, type LoadedSettings, type Origin } from '@tapetree/agent/settings'

/** The exit code is 3 if the settings have a problem, so that a script can tell. */
export const configShow: CommandRun = async (invocation, { stdout, stderr, ...io }) => {
  const { settings } = await surroundingsOf(io, { cwd: io.cwd })
  const { problems } = settings
  const rows = settingRows(settings, io.env)
  if (flag(invocation, 'json')) await printJson({ stdout }, { settings: rows, problems })
  else {
    const hasOrigin = flag(invocation, 'origin')
    const shown = rows.filter(({ value }) => value !== undefined || flag(invocation, 'all'))
    const table = outputTable(
      [{ title: 'SETTING' }, { title: 'VALUE', flexible: true }, ...(hasOrigin ? [{ title: 'FROM' }] : [])],
      shown.map(({ key, value, origin }) => [
        harmlessLine(key),
        value === undefined ? '' : harmlessLine(JSON.stringify(value)),
        harmlessLine(originText(origin)),
      ]),
      stdout.isTTY ? stdout.columns : undefined,
    )
    await write(stdout, table)
    for (const { message } of problems) await write(stderr, `${harmless(message)}\n`)
  }
  return problems.length === 0 ? exitCodes.ok : exitCodes.configuration
}

export const configPath: CommandRun = async (invocation, io) => {
  const { config, sessions, state, runtime } = placesOf(io)
  const settings = await settingsFile(config)
  const places = { settings, config, sessions, state, runtime }
  if (flag(invocation, 'json')) await printJson(io, places)
  else await write(io.stdout, outputTable([{ title: 'WHAT' }, { title: 'WHERE' }], Object.entries(places)))
  return exitCodes.ok
}

/** The file that is read, or the one to create. */
async function settingsFile(folder: string): Promise<string> {
  for (const name of ['settings.json', 'settings.yaml', 'settings.yml']) {
    const path = join(folder, name)
    if (await stat(path).catch(() => undefined)) return path
  }
  return join(folder, 'settings.json')
}

/** One setting and its current value. */
interface SettingInForce {
  key: string
  /** Absent if it is not set and has no default. Possible secrets are removed. */
  value?: unknown
  origin?: Origin
}

/** Every setting of the schema, in order; for user-defined names, one row for each name. */
function settingRows(settings: LoadedSettings, env: Readonly<Record<string, string | undefined>>): SettingInForce[] {
  const redactor = createRedactor({ secrets: secretsOf(env) })
  return describeSettings()
    .flatMap(({ key }) => (isRuleList(key) ? ruleRow(key, settings) : rowsFor(key, settings)))
    .map((row) => ('value' in row ? { ...row, value: redactor.json(withoutSecrets(row.value)) } : row))
}

/** The source of a value, as text. */
function originText(origin: Origin | undefined): string {
  if (origin === undefined) return 'default'
  const { layer, file, line, variable } = origin
  if (variable !== undefined) return variable
  if (file !== undefined) return line === undefined ? file : `${file}:${line}`
  return layer === 'built-in' ? 'default' : layer
}

function rowsFor(key: string, { values, origins }: LoadedSettings): SettingInForce[] {
  const path = key.split('.').filter((part) => part !== '<name>')
  const value = valueAt(values, path)
  if (!key.endsWith('<name>')) return [rowOf(path.join('.'), value, origins)]
  const named = Object.entries((value ?? {}) as Record<string, unknown>)
  return named.map(([name, entry]) => rowOf([...path, name].join('.'), entry, origins))
}

function rowOf(key: string, value: unknown, origins: LoadedSettings['origins']): SettingInForce {
  // Each item of a merged list has its own source.
  const origin = origins.get(key) ?? origins.get(`${key}.0`)
  return { key, ...(value !== undefined && { value }), ...(origin && { origin }) }
}

function isRuleList(key: string): boolean {
  return /^permissions\.(?:allow|ask|deny)\b/.test(key)
}

function ruleRow(key: string, { rules }: LoadedSettings): SettingInForce[] {
  const effect = key.split('.')[1]
  const of = (layer: readonly Rule[], origin: Origin): SettingInForce[] => {
    const value = layer.filter((rule) => rule.effect === effect).map(({ type, match }) => ({ type, match }))
    return value.length === 0 ? [] : [{ key: `permissions.${effect}`, value, origin }]
  }
  const rows = [...of(rules.user, { layer: 'user' }), ...of(rules.project, { layer: 'project' })]
  return rows.length > 0 ? rows : [{ key: `permissions.${effect}`, value: [], origin: { layer: 'built-in' } }]
}

function valueAt(values: object, path: readonly string[]): unknown {
  let at: unknown = values
  for (const name of path) at = (at as Record<string, unknown> | undefined)?.[name]
  return at
}

const secretPlaces = new Set(['headers', 'clientSecret'])

/** Values that may be secret: headers, environment variables of programs, client secrets, and arguments with such names. */
function withoutSecrets(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => {
      if (secretPlaces.has(key) || (name === 'env' && key === 'set')) return [key, hidden(inner)]
      if (key === 'args' && Array.isArray(inner)) return [key, inner.map(withoutSecretArgument)]
      return [key, withoutSecrets(inner, key)]
    }),
  )
}

/** `--token x`, `--api-key=x`, `DB_PASSWORD=x`, `Authorization: x`. */
function withoutSecretArgument(argument: unknown, index: number, all: readonly unknown[]): unknown {
  const before = all[index - 1]
  if (typeof before === 'string' && /^-[^=]*$/.test(before) && secretName.test(before)) return '[hidden]'
  const [name] = /^[^=:\s]*[=:]/.exec(String(argument)) ?? []
  return name !== undefined && secretName.test(name) ? `${name}[hidden]` : argument
}

const secretName = /token|key|secret|passw|credential|auth/i

function hidden(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return '[hidden]'
  return Object.fromEntries(Object.keys(value).map((key) => [key, '[hidden]']))
}
