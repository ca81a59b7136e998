export {
  type PluginProblem,
  PluginSetupError,
  registeredTwice,
  type RegistrationKind,
} from '../common/errors/plugin-setup-error.js';
