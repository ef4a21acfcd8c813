import { runChat } from '../run-chat.ts'
import { ScriptedSource } from './scripted-source.ts'

/** A chat whose process throws an unexpected error. */
process.on('uncaughtException', (error) => {
  process.stdout.write(`reported: ${error.message}\r\n`)
  process.exit(1)
})
process.stdin.once('data', () => {
  throw new Error('an unexpected error')
})
const source = new ScriptedSource()
await runChat({
  source,
  first: source.opened('first'),
  look: { theme: 'dark', vim: false, screenReader: false, altScreen: true, color: true },
  cwd: process.cwd(),
  home: process.cwd(),
  env: {},
})
