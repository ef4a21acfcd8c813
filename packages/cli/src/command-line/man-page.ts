import type { CommandSpec } from './command.ts'
import { commandName, optionForm, optionText, positionalForm, shownOptions, summaryOf, usageOf } from './help.ts'
import { exitCodeMeanings } from './exit-code.ts'
import { version } from './version.ts'

/** The man page, as roff source. */
export function manPage(commands: readonly CommandSpec[]): string {
  const chat = commands.find(({ path }) => path.length === 0)
  return [
    `.TH TAPETREE 1 "" "tapetree ${version}" "User Commands"`,
    '.SH NAME',
    'tapetree \\- a coding agent whose sessions survive crashes',
    '.SH SYNOPSIS',
    ...commands.flatMap((spec) => ['.br', escaped(usageOf(spec))]),
    ...(chat ? ['.SH DESCRIPTION', ...body(chat)] : []),
    '.SH COMMANDS',
    ...commands
      .filter((spec) => spec !== chat)
      .flatMap((spec) => [`.SS ${escaped(commandName(spec))}`, `${escaped(summaryOf(spec))}.`, ...body(spec)]),
    '.SH EXIT STATUS',
    ...Object.entries(exitCodeMeanings).flatMap(([code, meaning]) => tagged(code, meaning)),
    '.SH ENVIRONMENT',
    ...environment.flatMap(([name, text]) => tagged(name, text)),
    '.SH FILES',
    ...files.flatMap(([name, text]) => tagged(name, text)),
    '',
  ].join('\n')
}

const environment: readonly (readonly [string, string])[] = [
  ['TAPETREE_HOME', 'One folder for settings, keys, sessions and all other files. The system keyring is not used.'],
  [
    'XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME, XDG_CACHE_HOME, XDG_RUNTIME_DIR',
    'Base folders for each kind of file if TAPETREE_HOME is not set.',
  ],
  ['NO_COLOR, FORCE_COLOR', 'Turn color off or on.'],
  ['VISUAL, EDITOR, PAGER', 'Programs to edit and to view text.'],
  ['HTTPS_PROXY, HTTP_PROXY, NO_PROXY', 'Proxies for requests to providers.'],
]

const files: readonly (readonly [string, string])[] = [
  ['~/.config/tapetree/settings.json', 'Settings; see `tapetree config show`.'],
  ['~/.config/tapetree/credentials.json', 'Keys, if the system has no keyring. Only its owner can read it.'],
  ['~/.local/share/tapetree/sessions/', 'Sessions, one folder each.'],
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

/** Escapes backslashes, dashes and leading dots or quotes for roff; other characters become numeric escapes. */
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
