/** Settings, trust, credentials, resources and redaction. */
export {
  allowanceOf,
  createRedactor,
  secretsOf,
  type RedactingByteStream,
  type RedactingStream,
  type RedactionPolicy,
  type Redactor,
} from '@tapetree/redact'
export type { Instructions } from './resources/instructions.ts'
export { loadResources, type ResourcePlaces, type Resources } from './resources/load-resources.ts'
export type { Skill } from './resources/skills.ts'
export type { Template } from './resources/templates.ts'
export type { Settings } from './settings/built-in.ts'
export { changeUserSettings, type SettingsChange } from './settings/change-settings.ts'
export { configFolder, SettingsError, type SettingsErrorCode } from './settings/config-files.ts'
export {
  Credential,
  Credentials,
  type CredentialOwner,
  type CredentialPlaces,
  type FoundCredential,
  KeyringProblem,
  systemKeyring,
  type Keyring,
} from './settings/credentials.ts'
export { describeSettings, type SettingRow } from './settings/describe.ts'
export { inspectProject, type Project } from './settings/inspect-project.ts'
export { loadSettings, type LoadedSettings, type LoadSettingsOptions, type SettingsProblem } from './settings/layers.ts'
export type { Origin } from './settings/merge-settings.ts'
export { findProjectRoot } from './settings/project.ts'
export { settingsJsonSchema, type SettingsInput } from './settings/schema.ts'
export { grantTrust, revokeTrust, settleTrust, trustOf, type ProjectTrust, type TrustChange } from './settings/trust.ts'
export { TrustStore, type Grant } from './settings/trust-store.ts'
export type { Environment } from './settings/config-files.ts'
export type { FileSettings, SettingFault } from './settings/check-settings.ts'
export type { KeyringEntry, KeyringPackage } from './settings/credentials.ts'
export type { LayerName } from './settings/merge-settings.ts'
export type { LeftOut, ProjectFile } from './settings/project.ts'
export type { ProjectCommand, ProjectProgram } from './settings/inspect-project.ts'
export type { TrustedContent } from './resources/resource-files.ts'
export type { CheckedSettings } from './settings/schema.ts'
