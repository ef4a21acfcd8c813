import type { CommandSpec, OptionSpec } from '../../command-line/command.ts'
import { modelOptions, permissionModeOption } from './agent-options.ts'

const output: readonly OptionSpec[] = [
  {
    name: 'jsonl',
    description: 'print every event as a line of JSON as it comes: the lines of the log, and text on its way',
  },
  {
    name: 'output-schema',
    value: 'schema',
    description: 'a JSON Schema, or a file with one: the answer is JSON that fits it, or the exit code is 1',
    completes: 'file',
  },
]

const conversation: readonly OptionSpec[] = [
  {
    name: 'session',
    value: 'session',
    description: 'go on with this session (id, beginning of an id, name, or last); otherwise a new one is made',
    completes: 'session',
  },
  { name: 'continue', short: 'c', description: 'go on with the newest session of this folder' },
  {
    name: 'input',
    value: 'format',
    choices: ['text', 'jsonl'],
    default: 'text',
    description:
      'what stdin is: text of the prompt, or lines of JSON with prompts, steers, answers to permissions and cancels',
  },
]

const agent: readonly OptionSpec[] = [
  ...modelOptions,
  { name: 'system-prompt', value: 'text', description: 'a system prompt in the place of our own' },
  { name: 'append-system-prompt', value: 'text', description: 'added to the system prompt' },
  {
    name: 'tools',
    value: 'names',
    description: 'only these tools, divided by commas, with * at the end of a name for all that begin so',
  },
]

const permissions: readonly OptionSpec[] = [
  {
    ...permissionModeOption,
    description: 'how much happens without asking; what would be asked is refused here, because nobody is there',
  },
  {
    name: 'allow',
    value: 'rule',
    many: true,
    description: 'what passes without asking, such as "command npm test" (many)',
  },
  { name: 'deny', value: 'rule', many: true, description: 'what never happens, such as "write ~/notes" (many)' },
]

const limits: readonly OptionSpec[] = [
  { name: 'max-turns', value: 'count', description: 'stop after so many turns of the model' },
  { name: 'max-cost', value: 'dollars', description: 'stop when the run has cost so many US dollars' },
  { name: 'timeout', value: 'seconds', description: 'stop after so many seconds' },
]

export const runCommands: readonly CommandSpec[] = [
  {
    path: ['run'],
    summary: 'answer one prompt and end, for scripts and pipes',
    description:
      'The answer goes to stdout, and everything else to stderr: tool calls, notices, the id of the session. What is piped in is added to the ' +
      'prompt, or is the prompt. @path in the prompt puts in a text file, or attaches an image.\n\n' +
      'Nobody is asked. What needs a permission that no rule gives is refused, the model is told, and the exit code is 9. A folder whose own ' +
      'settings were never trusted stays untrusted.\n\n' +
      'A session that another process has open is not opened twice: the prompt goes to that process.',
    positionals: [{ name: 'prompt', description: 'what to do', many: true }],
    options: [...output, ...conversation, ...agent, ...permissions, ...limits],
    examples: [
      { command: 'tapetree run "What does @src/main.ts do?"', says: 'ask about a file' },
      { command: 'git diff | tapetree run "Write a commit message" > message.txt', says: 'work on what is piped in' },
      {
        command:
          'tapetree run --allow "command npm test" --permission-mode accept-edits --max-cost 2 "Make the tests pass"',
        says: 'let it edit files here and run one command, for at most two dollars',
      },
      {
        command: `tapetree run -c --output-schema '{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}' "Are we done?"`,
        says: 'go on with the last session, and get an answer that a program can read',
      },
    ],
    load: async () => (await import('../run.ts')).runPrompt,
  },
]
