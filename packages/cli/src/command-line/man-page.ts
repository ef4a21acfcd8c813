import type { CommandSpec } from './command.ts'
import {
  commandName,
  optionForm,
  optionText,
  positionalForm,
  shownOptions,
  summaryOf,
  usageOf,
} from './command-usage.ts'
import { exitCodeMeanings } from './exit-code.ts'
import { version } from './version.ts'

/** Everything about the command, as source for `man`. */
export function manPage(commands: readonly CommandSpec[]): string {
  const chat = commands.find(({ path }) => path.length === 0)
  return [
    `.TH TAPETREE 1 "" "tapetree ${version}" "User Commands"`,
    '.SH NAME',
    'tapetree \\- a coding agent whose sessions cannot be lost',
    '.SH SYNOPSIS',
    ...commands.flatMap((spec) => ['.br', escaped(usageOf(spec))]),
    ...(chat ? ['.SH DESCRIPTION', ...body(chat)] : []),
    '.SH COMMANDS',
    ...commands
      .filter((spec) => spec !== chat)
      .flatMap((spec) => [`.SS ${escaped(commandName(spec))}`, `${escaped(summaryOf(spec))}.`, ...body(spec)]),
    '.SH EXIT STATUS',
    ...exitCodeMeanings.flatMap(({ code, meaning }) => tagged(String(code), meaning)),
    '.SH ENVIRONMENT',
    ...environment.flatMap(([name, text]) => tagged(name, text)),
    '.SH FILES',
    ...files.flatMap(([name, text]) => tagged(name, text)),
    '',
  ].join('\n')
}

const environment: readonly (readonly [string, string])[] = [
  ['TAPETREE_HOME', 'One folder for settings, sessions and everything else.'],
  [
    'XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME, XDG_CACHE_HOME, XDG_RUNTIME_DIR',
    'Where each kind of file goes otherwise.',
  ],
  ['NO_COLOR, FORCE_COLOR', 'Whether there are colours.'],
  ['VISUAL, EDITOR, PAGER', 'Programs to write and to read with.'],
  ['HTTPS_PROXY, HTTP_PROXY, NO_PROXY', 'How providers are reached.'],
]

const files: readonly (readonly [string, string])[] = [
  ['~/.config/tapetree/settings.json', 'Settings; see `tapetree config show`.'],
  ['~/.config/tapetree/credentials.json', 'Keys, where there is no keyring. Only its owner may read it.'],
  ['~/.local/share/tapetree/sessions/', 'The sessions, a folder each.'],
]

function body(spec: CommandSpec): string[] {
  const { description, positionals = [], examples = [] } = spec
  return [
    ...(description === undefined
      ? []
      : description.split(/\n\s*\n/).flatMap((text) => ['.PP', escaped(oneLine(text))])),
    ...positionals.flatMap((each) => tagged(positionalForm(each), each.description)),
    ...shownOptions(spec).flatMap((each) => tagged(optionForm(each), optionText(each))),
    ...examples.flatMap(({ command, says }) => ['.PP', escaped(says), '.RS', '.nf', escaped(command), '.fi', '.RE']),
  ]
}

function tagged(tag: string, text: string): string[] {
  return ['.TP', `.B ${escaped(tag)}`, escaped(oneLine(text))]
}

function oneLine(text: string): string {
  return text.trim().replaceAll(/\s+/g, ' ')
}

/** A backslash, a dash and a line that begins with a dot or a quote mean something to roff; other letters have numbers there. */
function escaped(text: string): string {
  return text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll(/^(?=[.'])/gm, '\\&')
    .replaceAll(/[^\u0020-\u007e\n]/gu, (letter) => `\\[u${hexOf(letter)}]`)
}

function hexOf(letter: string): string {
  return (letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')
}
