export { FakeClock } from './fake-clock.ts'
export {
  FakeProvider,
  startFakeProvider,
  type BrokenRule,
  type FakeAnswer,
  type FakeApi,
  type FakeBytes,
  type FakeContent,
  type FakeEnding,
  type FakeErrorKind,
  type FakeFailure,
  type FakeFinish,
  type FakeHost,
  type FakeProviderOptions,
  type FakeRequest,
  type FakeResponder,
  type FakeStep,
  type FakeUsage,
} from './fake-provider/index.ts'
export { goldenLog, type GoldenLogOptions } from './golden-log.ts'
export { newestUserMessage, RecordedFolder, twoChanges } from './recorded-folder.ts'
export {
  script,
  ScriptBuilder,
  ScriptedModel,
  scriptedModel,
  type ScriptedModelOptions,
  type ScriptEvent,
} from './scripted-model.ts'
export { TestAgent, type TestAgentOptions } from './test-agent.ts'
