/** The tools of a session on another machine: the host that runs them there, and the session's side of it. */
export { ToolHost, ToolHostInUse, type HostMode, type ToolHostOptions } from './tool-host/tool-host.ts'
export type { HostLink } from './tool-host/hosted-call.ts'
export { HostUnavailable } from './tool-host/conversation.ts'
export { RemoteJobs, type ReadRemoteJobOptions } from './tool-host/remote-jobs.ts'
export { recreateFiles, recreatedNotice, type RecreatedFiles, type RemoteFiles } from './tool-host/remote-files.ts'
export {
  RemoteWorkspace,
  type ChannelEvent,
  type HostChannel,
  type WorkspaceReference,
} from './tool-host/remote-workspace.ts'
export {
  hostMessage,
  hostRequest,
  introduced,
  maxHelloBytes,
  maxHostMessageBytes,
  parseMessage,
  toolHostProtocol,
  type HostedWorkspace,
  type HostHello,
  type HostMessage,
  type HostRequest,
} from './tool-host/messages.ts'
