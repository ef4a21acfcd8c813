// The pages of the API are written by hand. These tests fail if a public name is missing there.
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import * as extensions from './extensions.ts'
import * as foreign from './foreign.ts'
import * as core from './index.ts'
import * as mcp from './mcp.ts'
import * as permissions from './permissions/index.ts'
import * as sandbox from './sandbox/index.ts'
import * as settings from './settings.ts'
import * as testing from './testing/index.ts'
import * as toolHost from './tool-host.ts'
import * as tools from './tools.ts'
import * as variants from './variants.ts'
import * as workspace from './workspace.ts'

const api = {
  ...core,
  ...extensions,
  ...foreign,
  ...mcp,
  ...permissions,
  ...sandbox,
  ...settings,
  ...toolHost,
  ...tools,
  ...variants,
  ...workspace,
}
const entries = [
  'index.ts',
  'run.ts',
  'models.ts',
  'tools.ts',
  'workspace.ts',
  'variants.ts',
  'sandbox/index.ts',
  'settings.ts',
  'extensions.ts',
  'foreign.ts',
  'mcp.ts',
  'tool-host.ts',
  'permissions/index.ts',
]

const page = pageAt('reference/agent-api.md')

test('every name that can be imported is on the page', () => {
  const sources = [
    ...entries,
    'testing/index.ts',
    ...['ai-sdk', 'anthropic', 'google', 'openai', 'openai-compatible'].map(
      (provider) => `models/providers/${provider}.ts`,
    ),
  ]
  const names = sources.flatMap((source) => exportsOf(sourceAt(source)))
  expect(names).toContain('run')
  expect(names.filter((name) => !isNamed(name))).toEqual([])
})

test('no entry point has 60 names or more, and no name stands in two of them', () => {
  const names = entries.map((entry) => exportsOf(sourceAt(entry)))
  expect(names.map((each) => each.length).filter((count) => count >= 60)).toEqual([])
  const all = names.flat()
  expect(all.filter((name, place) => all.indexOf(name) !== place)).toEqual([])
})

test('every method and property of the classes is on the page or in the guide to tests', () => {
  const guide = pageAt('guides/test-your-agent.md')
  const classes = [
    api.AgentSession,
    api.Credential,
    api.Credentials,
    api.ExtensionHost,
    api.Jobs,
    api.McpServers,
    api.PermissionGate,
    api.Requests,
    api.Sandbox,
    api.TrustStore,
    testing.FakeClock,
    testing.FakeProvider,
    testing.ScriptBuilder,
    testing.ScriptedModel,
    testing.TestAgent,
  ]
  const members = classes.flatMap(({ name, prototype }) =>
    Object.getOwnPropertyNames(prototype).map((member) => ({ name, member })),
  )
  // A clock and a model are explained with their interfaces.
  const explained = new Set(['constructor', 'now', 'wait', 'prepare', 'costOf', 'build'])
  const missing = members.filter(
    ({ member }) => !explained.has(member) && !isNamed(member) && !isNamed(member, guide) && !isCalled(member, guide),
  )
  expect(missing).toEqual([])
})

test('every kind of a model error has a row, and no other', () => {
  const source = typeAt('models/model.ts', 'ModelErrorKind')
  const kinds = Array.from(source.matchAll(/^ {2}\| '([a-z-]+)'/gm), ([, kind]) => kind)
  expect(new Set(rowsOf(sectionOf(pageAt('reference/models.md'), 'Errors')))).toEqual(new Set(kinds))
})

test('every part of an answer has a row, and no other', () => {
  const source = sourceAt('models/model.ts')
  const parts = source.slice(source.indexOf('export type ModelPart'), source.indexOf('export type FinishReason'))
  const types = Array.from(parts.matchAll(/type: '([a-z_]+)'/g), ([, type]) => type)
  expect(new Set(rowsOf(sectionOf(pageAt('reference/models.md'), 'The interface')))).toEqual(new Set(types))
})

test('every setting and every limit has a row, and no other', () => {
  const runs = pageAt('reference/runs.md')
  const source = sourceAt('run/run-settings.ts')
  const settings = membersOf(source.slice(0, source.indexOf('export const')))
  expect(new Set(rowsOf(sectionOf(runs, 'Settings')))).toEqual(new Set(settings))
  const limits = membersOf(sourceAt('run/limits.ts').split('export type LimitName')[0] ?? '')
  expect(new Set(rowsOf(sectionOf(runs, 'Limits')))).toEqual(new Set(limits))
})

test('every kind of event has a row, and no other', () => {
  const page = pageAt('reference/events.md')
  const told = [...typesIn(sourceAt('run/events.ts')), 'delta', 'partial']
  expect(new Set(rowsOf(sectionOf(page, 'Everything')))).toEqual(new Set(told))
  const views = sourceAt('agent/events.ts')
  const shown = typesIn(views.slice(0, views.indexOf('interface Subscribable')))
  expect(new Set(rowsOf(sectionOf(page, 'Views')))).toEqual(new Set(shown))
  expect(new Set(rowsOf(sectionOf(page, 'Callbacks')))).toEqual(new Set(optionalMembersOf('agent/events.ts')))
})

test('every code of an error has a row, and no other', () => {
  const errors = pageAt('reference/errors.md')
  const codes = {
    SessionError: sourceAt('../../session/src/errors.ts'),
    PromptError: sourceAt('prompt/compose-message.ts').split('override')[1]?.split('constructor')[0] ?? '',
    RegistryError: typeAt('models/registry/model-info.ts', 'RegistryErrorCode'),
    SettingsError: typeAt('settings/config-files.ts', 'SettingsErrorCode'),
    ModelError: typeAt('models/model.ts', 'ModelErrorKind'),
  }
  for (const [name, source] of Object.entries(codes)) {
    const known = Array.from(source.matchAll(/'([a-z]+(?:-[a-z]+)*)'/g), ([, code]) => code)
    expect(new Set(rowsOf(sectionOf(errors, name))), name).toEqual(new Set(known))
  }
})

test('the settings page matches the schema; UPDATE_SETTINGS_PAGE=1 regenerates it', () => {
  const between = /(?<=<!-- made from the schema -->\n)[^]*(?=\n<!-- end -->)/
  const path = 'reference/settings.md'
  if (process.env['UPDATE_SETTINGS_PAGE'] === '1') {
    writeFileSync(
      pageUrl(path),
      pageAt(path).replace(between, () => `\n${settingsTable().join('\n')}\n`),
    )
  }
  const [table = ''] = between.exec(pageAt(path)) ?? []
  const rows = table.split('\n').map((row) => row.replaceAll(/ +/g, ' ').replaceAll(/-{3,}/g, '---'))
  expect(rows.filter((row) => row !== '')).toEqual(settingsTable())
})

test('every tool has a row in the guide, which says whether it is read-only and what happens after a crash', () => {
  const guide = sectionOf(pageAt('guides/tools.md'), 'Built-in tools')
  const words = { safe: 'is run again', reattach: 'is reattached', never: 'is not run again' }
  const told = Array.from(guide.matchAll(/^\| `([a-z_]+)` +\|.+\| (yes|no) +\| ([a-z ]+?) +\|$/gm), ([, ...row]) =>
    row.join(', '),
  )
  const tools = api
    .allTools()
    .map(({ name, readOnly, replay }) => [name, readOnly ? 'yes' : 'no', words[replay]].join(', '))
  expect(told.toSorted()).toEqual(tools.toSorted())
})

function settingsTable(): string[] {
  const rows = api.describeSettings().map(({ key, type, default: value, variable, description }) => {
    const cells = [`\`${key}\``, type.replaceAll(' | ', ', '), code(value), code(variable), description]
    return cells.map((cell) => cell.replaceAll('|', '\\|'))
  })
  const all = [['setting', 'type', 'default', 'variable', 'what it does'], Array<string>(5).fill('---'), ...rows]
  return all.map((cells) => `| ${cells.join(' | ')} |`.replaceAll(/ +/g, ' '))
}

function code(text: string | undefined): string {
  return text === undefined ? '' : `\`${text}\``
}

function pageAt(path: string): string {
  return readFileSync(pageUrl(path), 'utf8')
}

function pageUrl(path: string): URL {
  return new URL(`../../../docs/${path}`, import.meta.url)
}

function sourceAt(path: string): string {
  return readFileSync(new URL(path, import.meta.url), 'utf8')
}

/** The declaration of one exported type, up to the next empty line. */
function typeAt(path: string, name: string): string {
  return new RegExp(`^export type ${name} =[^]*?\\n\\n`, 'm').exec(sourceAt(path))?.[0] ?? ''
}

function exportsOf(source: string): string[] {
  const lists = Array.from(source.matchAll(/export (?:type )?\{([^}]*)\}/g), ([, names = '']) => names.split(','))
  const listed = lists.flat().map((name) =>
    name
      .trim()
      .replace(/^type /, '')
      .replace(/^\w+ as /, ''),
  )
  const declared = Array.from(
    source.matchAll(/^export (?:function|interface|type|class|const) (\w+)/gm),
    ([, name]) => name,
  )
  return [...listed, ...declared].filter((name) => name !== undefined && name !== '') as string[]
}

/** From a heading of the second level to the next one. */
function sectionOf(text: string, heading: string): string {
  const start = text.indexOf(`\n## ${heading}\n`)
  const end = text.indexOf('\n## ', start + 1)
  return text.slice(start, end === -1 ? undefined : end)
}

/** The content of the first column. */
function rowsOf(text: string): string[] {
  return Array.from(text.matchAll(/^\| `([A-Za-z_-]+)` +\|/gm), ([, name]) => name as string)
}

function typesIn(source: string): string[] {
  return Array.from(source.matchAll(/type: '([a-z_]+)'/g), ([, type]) => type as string)
}

function optionalMembersOf(path: string): string[] {
  return Array.from(sourceAt(path).matchAll(/^ {2}(\w+)\?: /gm), ([, name]) => name as string)
}

function membersOf(source: string): string[] {
  return Array.from(source.matchAll(/^ {2}(\w+)\??: /gm), ([, name]) => name as string)
}

/** At the start of a code fragment, as in `open(id)`. */
function isNamed(name: string, text = page): boolean {
  return new RegExp(`[\`\\s{]${name}\\b`).test(text)
}

/** In an example, as in `agent.clock.skip()`. */
function isCalled(name: string, text: string): boolean {
  return text.includes(`.${name}(`)
}
