import { startFakeProvider, type FakeProvider } from '@tapetree/agent/testing'
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface FakeHome extends AsyncDisposable {
  readonly provider: FakeProvider
  /** An empty working folder. */
  readonly cwd: string
  readonly home: string
  /** The environment of a command: its own `TAPETREE_HOME`, the path and the compile cache of this process, and nothing else. */
  readonly env: Record<string, string>
}

export interface FakeHomeOptions {
  /** Merged over the settings that name the fake provider. */
  settings?: Record<string, unknown> & { permissions?: Record<string, unknown> }
}

/** The model of a fake home, as written on a command line. */
export const fakeModel = 'fake/model-1'

/**
 * A home whose settings use a scripted provider, and mode `ask`, so that a test does not depend on the sandbox of the machine; the mode
 * `undefined` is the default. Everything else is as on a user's machine.
 */
export async function fakeHome({ settings = {} }: FakeHomeOptions = {}): Promise<FakeHome> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'tapetree-home-')))
  const provider = await startFakeProvider()
  const [home, cwd, config] = [join(root, 'home'), join(root, 'work'), join(root, 'tapetree')]
  for (const folder of [home, cwd, config]) await mkdir(folder, { mode: 0o700 })
  const permissions = { mode: 'ask', ...settings.permissions }
  const written = { ...fakeSettings(provider), ...settings, permissions }
  await writeFile(join(config, 'settings.json'), JSON.stringify(written, null, 2), { mode: 0o600 })
  const compileCache = process.env['NODE_COMPILE_CACHE']
  const env = {
    HOME: home,
    TAPETREE_HOME: config,
    XDG_RUNTIME_DIR: root,
    PATH: process.env['PATH'] ?? '',
    TERM: 'xterm-256color',
    FAKE_API_KEY: 'no-secret',
    ...(compileCache !== undefined && { NODE_COMPILE_CACHE: compileCache }),
  }
  return {
    provider,
    home,
    cwd,
    env,
    [Symbol.asyncDispose]: async () => {
      await provider[Symbol.asyncDispose]()
      await rm(root, { recursive: true, force: true, maxRetries: 3 })
    },
  }
}

function fakeSettings(provider: FakeProvider): Record<string, unknown> {
  return {
    model: fakeModel,
    providers: {
      fake: {
        api: 'openai-compatible',
        baseUrl: provider.baseUrl('openaiCompatible'),
        keyVariable: 'FAKE_API_KEY',
        models: [{ id: 'model-1', contextTokens: 100_000, outputTokens: 8000, prices: { input: 1, output: 5 } }],
      },
    },
  }
}
