import { createModelRegistry, type ModelRegistry } from '@tapetree/agent/models'
import {
  configFolder,
  Credentials,
  findProjectRoot,
  inspectProject,
  loadSettings,
  systemKeyring,
  type Keyring,
  trustOf,
  TrustStore,
  type LoadedSettings,
  type ProjectTrust,
  type SettingsInput,
} from '@tapetree/agent/settings'
import type { Io } from '../command-line/io.ts'

/** The environment of sessions in a folder. */
export interface Surroundings {
  readonly trust: ProjectTrust
  readonly settings: LoadedSettings
  readonly registry: ModelRegistry
  readonly credentials: Credentials
}

/** With `TAPETREE_HOME`, everything is in that folder, also keys: the keyring would be the same for all such folders. */
export function keyringFor(env: Io['env']): { keyring?: Keyring } {
  return env['TAPETREE_HOME'] ? {} : { keyring: systemKeyring() }
}

/** Settings and models that apply in a folder. Ignores untrusted repository settings. */
export async function surroundingsOf(
  { home, env }: Pick<Io, 'home' | 'env'>,
  { cwd, flags, trust: settled }: { cwd: string; flags?: SettingsInput; trust?: ProjectTrust },
): Promise<Surroundings> {
  const config = configFolder({ home, env })
  const trust =
    settled ?? (await trustOf(await inspectProject(await findProjectRoot(cwd), cwd), new TrustStore(config)))
  const settings = await loadSettings({ cwd, home, env, trust, ...(flags && { flags }) })
  const credentials = new Credentials({ env, configFolder: config, ...keyringFor(env) })
  const registry = createModelRegistry({ providers: settings.values.providers, credentials, env })
  return { trust, settings, registry, credentials }
}
