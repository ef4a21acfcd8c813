// Before the system tests: those that run the command as a user does run the bundle, and others start programs from their sources.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { buildCli } from './build-cli.ts'

export async function setup(): Promise<void> {
  await Promise.all([buildCli(), compileSources()])
}

/** Fills the compile cache. Programs that tests kill never get to write what they compiled. */
async function compileSources(): Promise<void> {
  if (process.env['NODE_COMPILE_CACHE'] === undefined) return
  const loaded = ['@tapetree/server', '@tapetree/agent', '@tapetree/agent/testing', '@tapetree/session/stores/file']
  const program = `await Promise.all(${JSON.stringify(loaded)}.map((name) => import(name)))`
  await promisify(execFile)(process.execPath, ['-C', '@tapetree/source', '--input-type=module', '-e', program])
}
