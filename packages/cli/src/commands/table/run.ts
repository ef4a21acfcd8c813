import type { CommandSpec, OptionSpec, PositionalSpec } from '../../command-line/command.ts'
import { modelOptions, otlpOption, permissionModeOption, sandboxOption } from './agent-options.ts'

const output: readonly OptionSpec[] = [
  {
    name: 'jsonl',
    description: 'print every event as a line of JSON as it happens: log records and streamed text',
  },
  {
    name: 'output-schema',
    value: 'schema',
    description: 'a JSON Schema, or a file with one; if the answer does not match it, the exit code is 1',
    completes: 'file',
  },
]

const conversation: readonly OptionSpec[] = [
  {
    name: 'session',
    value: 'session',
    description: 'continue this session (id, id prefix, name, or last) instead of starting a new one',
    completes: 'session',
  },
  { name: 'continue', short: 'c', description: 'continue the newest session of this folder' },
  {
    name: 'input',
    value: 'format',
    choices: ['text', 'jsonl'],
    default: 'text',
    description:
      'how to read stdin: as text of the prompt, or as lines of JSON with prompts, steers, permission answers and cancels',
  },
]

const agent: readonly OptionSpec[] = [
  ...modelOptions,
  { name: 'system-prompt', value: 'text', description: 'replace the built-in system prompt' },
  { name: 'append-system-prompt', value: 'text', description: 'append to the system prompt' },
  {
    name: 'tools',
    value: 'names',
    description: 'allow only these tools, separated by commas; * at the end of a name matches any suffix',
  },
]

const permissions: readonly OptionSpec[] = [
  {
    ...permissionModeOption,
    description: 'what the agent may do without asking; requests that need an answer are refused',
  },
  sandboxOption,
  {
    name: 'allow',
    value: 'rule',
    many: true,
    description: 'allow without asking, such as "command npm test"',
  },
  { name: 'deny', value: 'rule', many: true, description: 'never allow, such as "write ~/notes"' },
]

const limits: readonly OptionSpec[] = [
  { name: 'max-turns', value: 'count', description: 'stop after this many model turns' },
  { name: 'max-cost', value: 'dollars', description: 'stop when the run has cost this many US dollars' },
  { name: 'timeout', value: 'seconds', description: 'stop after this many seconds' },
  { name: 'max-minutes', value: 'minutes', description: 'stop after this many minutes' },
]

const commandLimits: readonly OptionSpec[] = [
  {
    name: 'max-cpu-seconds',
    value: 'seconds',
    description:
      'limit the processor time of each process of a command; implies --sandbox required, like the next ones',
  },
  {
    name: 'max-memory',
    value: 'size',
    description: 'limit the memory of each process of a command, such as 2G or 500M',
  },
  { name: 'max-processes', value: 'count', description: 'limit the processes and threads of one command' },
  { name: 'max-file-size', value: 'size', description: 'limit the size of each file that a command writes' },
]

const conflicts: OptionSpec = {
  name: 'conflicts',
  value: 'whose',
  choices: ['ask', 'keep', 'take'],
  default: 'ask',
  description:
    'files that you and the chosen variant have both changed: ask on a terminal and otherwise refuse, keep yours, or take those of the variant',
}

const session: PositionalSpec = {
  name: 'session',
  description: 'id, id prefix, name, or the number of the variant if only one prompt has variants',
  required: true,
  completes: 'session',
}

const variants: readonly OptionSpec[] = [
  {
    name: 'variants',
    value: 'count',
    description: 'run the prompt so many times, each in a copy of the folder, and choose one; --model may name several',
  },
  {
    name: 'check',
    value: 'command',
    description: 'run this in each copy when its variant has ended, such as "npm test"',
  },
  { name: 'check-timeout', value: 'seconds', default: '600', description: 'stop the check after this many seconds' },
  { name: 'setup', value: 'command', description: 'run this in each copy first, such as "npm ci"' },
  { name: 'parallel', value: 'count', default: '4', description: 'run at most so many variants at once' },
  {
    name: 'choose',
    value: 'variant',
    description: 'best, none, or a number; without it, ask on a terminal, and otherwise keep all copies',
  },
  conflicts,
]

export const runCommands: readonly CommandSpec[] = [
  {
    path: ['run'],
    summary: 'answer one prompt and exit, for scripts and pipes',
    description:
      'Prints the answer to stdout and everything else to stderr: tool calls, notices, the session id. Piped input is ' +
      'added to the prompt, or is the prompt. @path in the prompt inserts a text file or attaches an image.\n\nNever ' +
      'asks. A permission request that no rule allows is refused, the model is told, and the exit code is 9. A folder ' +
      'with untrusted settings stays untrusted.\n\nIf another process has the session open, the prompt goes to that ' +
      'process.\n\nWith --variants, several agents answer the same prompt, each in a working copy of the folder. The files of the ' +
      'one that you choose are merged into the folder, and the copies are removed. --max-cost limits all of them together.',
    positionals: [{ name: 'prompt', description: 'the prompt', many: true }],
    options: [
      ...output,
      ...conversation,
      ...agent,
      ...permissions,
      ...limits,
      ...commandLimits,
      otlpOption,
      ...variants,
    ],
    examples: [
      { command: 'tapetree run "What does @src/main.ts do?"', says: 'ask about a file' },
      { command: 'git diff | tapetree run "Write a commit message" > message.txt', says: 'work on piped input' },
      {
        command:
          'tapetree run --allow "command npm test" --permission-mode accept-edits --max-cost 2 "Make the tests pass"',
        says: 'allow edits here and one command, for at most two dollars',
      },
      {
        command: `tapetree run -c --output-schema '{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}' "Are we done?"`,
        says: 'continue the last session and get an answer that a program can read',
      },
      {
        command: 'tapetree run --variants 3 --check "npm test" --permission-mode accept-edits "Fix the failing test"',
        says: 'try three times side by side, test each result, and choose one',
      },
    ],
    load: async () => (await import('../run.ts')).runPrompt,
  },
  {
    path: ['variants', 'list'],
    summary: 'list working copies of variants',
    description:
      'Lists the copies that `tapetree run --variants` has made and that are neither chosen nor removed, such as those of ' +
      'a process that was killed. To let an interrupted variant go on: `tapetree run --session <session> "Go on"`.',
    load: async () => (await import('../variants.ts')).runVariantsList,
  },
  {
    path: ['variants', 'show'],
    summary: 'show the changes of a variant as a diff',
    positionals: [session],
    load: async () => (await import('../variants.ts')).runVariantsShow,
  },
  {
    path: ['variants', 'choose'],
    summary: 'merge the files of a variant into the folder that was copied',
    description:
      'Merges them with what you have changed meanwhile, then removes the copies of all variants of the same prompt. ' +
      'The session continues in the folder. If a choice was interrupted, completes it.',
    positionals: [session],
    options: [conflicts],
    examples: [
      { command: 'tapetree variants choose 0193a7 --conflicts keep', says: 'keep your version of files in conflict' },
    ],
    load: async () => (await import('../variants.ts')).runVariantsChoose,
  },
  {
    path: ['variants', 'remove'],
    summary: 'remove working copies without taking over their files',
    description: 'The sessions remain, and the files of the copies stay in the file snapshots of the folder.',
    positionals: [{ ...session, required: false, many: true }],
    options: [{ name: 'all', description: 'all copies that no process uses' }],
    load: async () => (await import('../variants.ts')).runVariantsRemove,
  },
]
