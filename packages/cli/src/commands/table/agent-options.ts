import type { OptionSpec } from '../../command-line/command.ts'
import { permissionModes, thinkingLevels } from '../../session-source.ts'

export const modelOptions: readonly OptionSpec[] = [
  {
    name: 'model',
    short: 'm',
    value: 'model',
    description: 'the model to use, as provider/id or part of it',
    completes: 'model',
  },
  {
    name: 'thinking',
    value: 'level',
    choices: thinkingLevels,
    description: 'how much the model thinks before it answers',
  },
]

export const otlpOption: OptionSpec = {
  name: 'otlp',
  value: 'url',
  description: 'send traces to this OpenTelemetry collector, such as http://localhost:4318',
}

export const permissionModeOption: OptionSpec = {
  name: 'permission-mode',
  value: 'mode',
  choices: permissionModes,
  description: 'what the agent may do without asking',
}

export const sandboxOption: OptionSpec = {
  name: 'sandbox',
  value: 'when',
  choices: ['required'],
  description: 'refuse to start unless commands run in a sandbox; implies --permission-mode sandboxed',
}
