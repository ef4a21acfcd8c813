import { runChat } from '../run-chat.ts'
import { ScriptedSource } from './scripted-source.ts'

/** A chat in whose process something goes wrong that nobody foresaw. */
process.on('uncaughtException', (error) => {
  process.stdout.write(`reported: ${error.message}\r\n`)
  process.exit(1)
})
process.stdin.once('data', () => {
  throw new Error('nobody foresaw this')
})
const source = new ScriptedSource()
await runChat({
  source,
  first: source.opened('first'),
  look: { theme: 'dark', vim: false, screenReader: false, altScreen: true, colour: true },
  cwd: process.cwd(),
  home: process.cwd(),
  env: {},
})
