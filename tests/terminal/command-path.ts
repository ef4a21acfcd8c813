import { fileURLToPath } from 'node:url'

/** The command as `npm run build` makes it, for `spawn`: the program and its first arguments. */
export const builtCommand: readonly [string, ...string[]] = [
  process.execPath,
  fileURLToPath(new URL('../../packages/cli/dist/bin/tapetree.js', import.meta.url)),
]
