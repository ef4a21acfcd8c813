import type { CommandSpec, OptionSpec } from '../../command-line/command.ts'
import { modelOptions, permissionModeOption } from './agent-options.ts'

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
      'process.',
    positionals: [{ name: 'prompt', description: 'the prompt', many: true }],
    options: [...output, ...conversation, ...agent, ...permissions, ...limits],
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
    ],
    load: async () => (await import('../run.ts')).runPrompt,
  },
]
