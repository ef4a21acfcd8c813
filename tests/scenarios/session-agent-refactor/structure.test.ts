import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { verifies } from '../../support/verifies.ts'

const source = join(import.meta.dirname, '..', '..', '..', 'packages', 'agent', 'src')

function filesOf(...folders: string[]): string[] {
  return folders
    .flatMap((folder) => globSync(`${folder}/*.ts`, { cwd: source }))
    .filter((file) => !file.endsWith('.test.ts'))
}

function textOf(file: string): string {
  return readFileSync(join(source, file), 'utf8')
}

interface FunctionSize {
  name: string
  lines: number
}

/** The formatter puts the last brace of a function or method below the beginning of its first line. */
function functionsIn(file: string): FunctionSize[] {
  const lines = textOf(file).split('\n')
  const head =
    /^( {0,2})(?:export |static |private |readonly |async |get |function |\*)*#?(\w+)(?:<[^(]*>)?[ =]*(?:async )?\(/
  return lines.flatMap((line, start) => {
    const [, indent, name] = head.exec(line) ?? []
    if (indent === undefined || name === undefined || /^\s*(?:if|for|while|switch|return|await)\b/.test(line)) return []
    const end = lines.findIndex((each, index) => index >= start && each === `${indent}}`)
    return [{ name: `${file} ${name}`, lines: end - start + 1 }]
  })
}

verifies(
  [
    'session-agent-refactor/2 short-functions',
    'session-agent-refactor/7 short-functions',
    'session-agent-refactor/7 short-run',
  ],
  'no function of the loop and of what is around it has more than 100 lines, and what starts a run has far fewer than 80',
  () => {
    const functions = filesOf('run', 'agent', 'summary', 'prompt').flatMap(functionsIn)
    expect(functions.length).toBeGreaterThan(200)
    expect(functions.filter(({ lines }) => lines > 100)).toEqual([])
    const starts = ['agent/agent-session.ts prompt', 'run/run-slot.ts start', 'run/run.ts run', 'run/run.ts work']
    const sizes = starts.map((name) => functions.find((each) => each.name === name)?.lines ?? Infinity)
    expect(sizes.filter((lines) => lines >= 80)).toEqual([])
  },
)

verifies(
  ['session-agent-refactor/2 one-file-for-a-callback'],
  'the names of the callbacks stand in one file, and whoever passes them on does not know them',
  () => {
    const files = globSync('**/*.ts', { cwd: source }).filter((file) => !file.endsWith('.test.ts'))
    const naming = files.filter((file) =>
      /\bon(?:TextDelta|ToolCall|ToolResult|Complete|Error)\b\??[:.(]/.test(textOf(file)),
    )
    expect(naming.filter((file) => !file.startsWith('mcp/'))).toEqual(['agent/events.ts'])
  },
)

verifies(
  ['session-agent-refactor/3.1 components', 'session-agent-refactor/3.4 files'],
  'each concern has a file of its own, and the loop knows nothing of the sessions, providers and screens around it',
  () => {
    const concerns = {
      'the session as its user sees it': 'agent/agent-session.ts',
      'the state of one run': 'run/open-run.ts',
      'what one answer says': 'run/turn.ts',
      'turns and tool calls, with recovery around them': 'run/run.ts',
      'how to recover from an error': 'run/recovery.ts',
      'one run at a time': 'run/run-slot.ts',
      'queued messages': 'run/delivery.ts',
      summaries: 'summary/compaction.ts',
      titles: 'summary/title.ts',
      'cache markers': 'models/request/cache-markers.ts',
    }
    expect(Object.values(concerns).filter((file) => !globSync(file, { cwd: source }).length)).toEqual([])
    const imports = filesOf('run').flatMap((file) =>
      Array.from(textOf(file).matchAll(/from '(\.\.\/[^']+)'/g), ([, path]) => path as string),
    )
    expect(
      imports.filter(
        (path) => !/^\.\.\/(?:util\/|models\/[^/]+$|tools\/|permissions\/|workspace\/|prompt\/|summary\/)/.test(path),
      ),
    ).toEqual([])
  },
)
