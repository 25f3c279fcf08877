import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A Kubernetes API server for the tests of a class:
 *
 * <pre>@RegisterExtension static final QuorateKube kube = new QuorateKube();</pre>
 *
 * It needs the program quorate, on the PATH or named by QUORATE.
 */
public final class QuorateKube implements BeforeAllCallback, AfterAllCallback {
  private static final String PREFIX = "export KUBECONFIG=";
  private Process server;
  private String url = "";
  private String kubeconfig = "";

  /** Such as "https://127.0.0.1:41234". */
  public String url() {
    return url;
  }

  /** The path of a kubeconfig, of a user in the group system:masters. */
  public String kubeconfig() {
    return kubeconfig;
  }

  @Override
  public void beforeAll(ExtensionContext context) throws IOException {
    String program = System.getenv().getOrDefault("QUORATE", "quorate");
    Path directory = Files.createTempDirectory("kube");
    ProcessBuilder command =
        new ProcessBuilder(
            program, "apiserver", "--data-dir", directory.toString(), "--secure-port", "0");
    // Tests that are killed leave no server.
    command.environment().put("QUORATE_PARENT_PID", "" + ProcessHandle.current().pid());
    command.redirectError(directory.resolve("log").toFile());
    try {
      server = command.start();
    } catch (IOException error) {
      Assumptions.abort("there is no " + program + ": npm install quorate, or set QUORATE");
    }
    BufferedReader output = new BufferedReader(new InputStreamReader(server.getInputStream()));
    for (String line = output.readLine(); line != null; line = output.readLine()) {
      if (line.startsWith("https://")) url = line;
      if (!line.startsWith(PREFIX)) continue;
      kubeconfig = line.substring(PREFIX.length());
      return;
    }
    throw new IOException(Files.readString(directory.resolve("log")));
  }

  @Override
  public void afterAll(ExtensionContext context) {
    if (server != null) server.destroyForcibly();
  }
}
