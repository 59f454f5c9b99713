import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.cert.X509Certificate;
import java.time.Duration;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;

/** Uploads 5 MB with java.net.http over HTTP/1.1 and HTTP/2, and prints the status of each attempt. */
public class Upload {
    public static void main(String[] arguments) throws Exception {
        var attempts = Integer.parseInt(arguments[2]);
        var expects = arguments[1].equals("expect");
        var trusting = new X509TrustManager() {
            public void checkClientTrusted(X509Certificate[] chain, String type) {}
            public void checkServerTrusted(X509Certificate[] chain, String type) {}
            public X509Certificate[] getAcceptedIssuers() { return new X509Certificate[0]; }
        };
        var context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {trusting}, null);
        for (var version : HttpClient.Version.values()) {
            for (int n = 0; n < attempts; n++) {
                var client = HttpClient.newBuilder().sslContext(context).version(version).build();
                var request = HttpRequest.newBuilder(URI.create("https://127.0.0.1:" + arguments[0] + "/"))
                    .POST(HttpRequest.BodyPublishers.ofByteArray(new byte[5_000_000]))
                    .expectContinue(expects)
                    .timeout(Duration.ofSeconds(30));
                try {
                    System.out.println(client.send(request.build(), BodyHandlers.ofString()).statusCode());
                } catch (java.io.IOException error) {
                    System.out.println(error);
                }
            }
        }
        System.exit(0);
    }
}
