import { existsSync } from 'node:fs'
import { basename, extname } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A program or thread of ours, which lies beside the module that starts it. Throws if a bundler has left it out. */
export function programUrl(name: string, moduleUrl: string): URL {
  const file = `${name}${extname(moduleUrl)}`
  const program = new URL(file, moduleUrl)
  if (existsSync(program)) return program
  throw new Error(
    `${file} is missing beside ${basename(fileURLToPath(moduleUrl))}. If you bundle @tapetree/agent, add @tapetree/agent/programs/${name} as an entry named ${name}.`,
  )
}
